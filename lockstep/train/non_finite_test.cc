#include "lockstep/train/non_finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/train/ddp_form.h"
#include "lockstep/train/testing/only_world.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class NonFiniteTest : public ::testing::Test {
 protected:
  NonFiniteTest() : parts_(make_parts()) {
    // One step whose gradient is not finite.
    form_.ddp().run({.number = 0, .samples = 1, .lanes = {{0, 1}}}, [this](size_t) {
      return parts_.model.forward(data::Batch::of(at::full({1, 2}, 1e38))).mul(1e38).sum();
    });
  }

  static Parts make_parts() {
    Parts parts;
    parts.recipe = std::make_shared<testing_support::TinyRecipe>();
    parts.world = testing_support::only_world();
    parts.model = parts.recipe->make_model(1, testing_support::Blobs(1));
    parts.mixed = std::make_unique<amp::MixedPrecision>(std::vector<torch::nn::Module*>{parts.model.module.get()},
                                                        std::vector<optim::OptimizerRef>{},
                                                        amp::Options{.opt_level = amp::OptLevel::kO0});
    return parts;
  }

  Parts parts_;
  std::vector<std::string> warnings_;
  Logger log_{{.level = LogLevel::kInfo, .prefix = "", .color = false},
              [this](const std::string& line) { warnings_.push_back(line); }};
  DdpForm form_{parts_, log_};
};

TEST_F(NonFiniteTest, WarnsAndNamesTheParameter) {
  NonFinite non_finite(parts_, form_, log_);
  non_finite.warn(1.5);
  non_finite.tell_count();
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], HasSubstr("step 1: the gradient of weight is not finite (loss 1.5)"));
}

TEST_F(NonFiniteTest, ManyStepsAreOneWarningAndACount) {
  NonFinite non_finite(parts_, form_, log_);
  for (parts_.state.step = 2; parts_.state.step < 44; ++parts_.state.step) non_finite.warn(1.5);
  EXPECT_EQ(warnings_.size(), 1u);
  non_finite.tell_count();
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_EQ(warnings_[1], "warning: the gradient was not finite in 42 steps, from step 3 to step 44");
}

TEST_F(NonFiniteTest, AnOverflowIsOnTheBoard) {
  const NonFinite non_finite(parts_, form_, log_);
  EXPECT_EQ(non_finite.overflow(1, 65536), "weight");
  EXPECT_TRUE(warnings_.empty());  // one overflow is normal
}

TEST_F(NonFiniteTest, AnAnomalyEndsTheRunWhereARankHasFoundOne) {
  const NonFinite non_finite(parts_, form_, log_);
  EXPECT_NO_THROW(non_finite.tell_anomaly(""));
  try {
    non_finite.tell_anomaly("fc (aten::addmm)");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 1, rank 0: the first value that is not finite came from fc"));
  }
}

}  // namespace
}  // namespace lockstep::train
