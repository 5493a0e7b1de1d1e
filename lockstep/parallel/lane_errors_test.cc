#include "lockstep/parallel/lane_errors.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include <functional>
#include <stdexcept>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/nn/batch_norm.h"

namespace lockstep::parallel {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The first line of the E that comes from lane 2 of step 3, where `act` has thrown.
template <typename E>
std::string from_lane(const std::function<void()>& act, int64_t samples = 4) {
  try {
    try {
      act();
    } catch (...) {
      rethrow_from_lane(3, 2, samples);
    }
  } catch (const E& error) {
    EXPECT_EQ(typeid(error), typeid(E));
    return first_line(error.what());
  }
  return "";
}

TEST(LaneErrors, NameStepAndLaneAndKeepTheirTypes) {
  EXPECT_EQ(from_lane<ConfigError>([] { throw ConfigError("no mask"); }), "step 3, lane 2: no mask");
  EXPECT_EQ(from_lane<DataError>([] { throw DataError("a bad file"); }), "step 3, lane 2: a bad file");
  EXPECT_EQ(from_lane<std::runtime_error>([] { throw std::runtime_error("own"); }), "step 3, lane 2: own");
  EXPECT_THAT(from_lane<c10::Error>([] { at::ones({2}).view({3}); }), EndsWith(" (step 3, lane 2)"));
}

TEST(LaneErrors, ThoseWithAPlaceOrATypeOfTheirOwnStay) {
  EXPECT_EQ(from_lane<ConfigError>([] { throw ConfigError("step 3, rank 1: no mask"); }), "step 3, rank 1: no mask");
  EXPECT_EQ(from_lane<CommError>([] { throw CommError("rank 1 is gone"); }), "rank 1 is gone");
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  EXPECT_EQ(from_lane<Own>([] { throw Own("stop"); }), "stop");
  EXPECT_THROW(from_lane<ConfigError>([] { throw 5; }), int);
}

TEST(LaneErrors, ABatchNormOfOneSampleSaysHowToDropIt) {
  torch::nn::BatchNorm1d norm(3);
  const auto normalise = [&] { norm->forward(at::ones({1, 3})); };
  EXPECT_THAT(from_lane<c10::Error>(normalise, 1),
              HasSubstr("step 3, lane 2, whose batch has one sample; leave an epoch's last, smaller batch out by "
                        "drop_last (train --drop-last)"));
  EXPECT_THAT(from_lane<c10::Error>(normalise, 4), Not(HasSubstr("drop_last")));
  nn::BatchNorm2d own(3);
  const auto normalise_own = [&] { own->forward(at::ones({1, 3, 1, 1})); };
  EXPECT_THAT(
      from_lane<DataError>(normalise_own, 1),
      AllOf(StartsWith("step 3, lane 2, whose batch has one sample; leave an epoch's last, smaller batch out by "
                       "drop_last (train --drop-last)"),
            HasSubstr("BatchNorm in training needs more than one value a channel")));
  EXPECT_THAT(from_lane<DataError>(normalise_own, 4), Not(HasSubstr("drop_last")));
}

TEST(LaneErrors, ATargetOfOtherClassesSaysWhereTheirNumberComesFrom) {
  const at::Tensor outputs = at::ones({3, 10});
  const auto hint = AllOf(HasSubstr("step 3, lane 2, whose target has other classes than the network outputs"),
                          HasSubstr("TensorDataset counts unless its option classes says it"));
  EXPECT_THAT(from_lane<c10::Error>([&] {
                at::cross_entropy_loss(outputs, at::ones({3, 9}));
              }),
              hint)
      << "probabilities, as mixing makes them";
  EXPECT_THAT(from_lane<c10::IndexError>([&] { at::cross_entropy_loss(outputs, at::full({3}, 10, at::kLong)); }), hint);
  EXPECT_THAT(from_lane<c10::Error>([&] { outputs.view({4}); }), Not(HasSubstr("classes")));
}

}  // namespace
}  // namespace lockstep::parallel
