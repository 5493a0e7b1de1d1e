#include "lockstep/train/trial_lane.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/train/testing/tiny_parts.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "support/worlds.h"

namespace lockstep::train {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Plan plan_of(int lanes, int batch_size, int64_t samples, int64_t epochs = 2) {
  Plan plan{.lanes = lanes, .batch_size = batch_size};
  plan.steps_per_epoch = (samples + plan.global_batch() - 1) / plan.global_batch();
  plan.total_steps = epochs * plan.steps_per_epoch;
  return plan;
}

std::optional<LoneSample> lone(int lanes, int batch_size, int64_t samples, int64_t begin = 0) {
  return find_lone_sample(plan_of(lanes, batch_size, samples), samples, begin);
}

TEST(LoneSample, IsFoundWhereALaneHasOne) {
  EXPECT_EQ(lone(2, 4, 9), (LoneSample{.step = 1, .lane = 0}));
  EXPECT_EQ(lone(2, 4, 10), (LoneSample{.step = 1, .lane = 0}));
  EXPECT_EQ(lone(2, 4, 11), (LoneSample{.step = 1, .lane = 1})) << "two and one";
  EXPECT_EQ(lone(2, 4, 12), std::nullopt);
  EXPECT_EQ(lone(2, 4, 16), std::nullopt);
  EXPECT_EQ(lone(4, 1, 16), (LoneSample{.step = 0, .lane = 0}));
  EXPECT_EQ(lone(4, 8, 3), (LoneSample{.step = 0, .lane = 0}));
  EXPECT_EQ(lone(2, 4, 9, /*begin=*/2), (LoneSample{.step = 3, .lane = 0})) << "in the next epoch";
  EXPECT_EQ(lone(2, 4, 9, /*begin=*/4), std::nullopt) << "the run's end";
}

TEST(LoneSample, OfADroppedBatchDoesNotCome) {
  Plan plan = plan_of(2, 4, 8);
  EXPECT_EQ(find_lone_sample(plan, 9, 0), std::nullopt);
  plan = plan_of(2, 4, 9);
  plan.total_steps = 1;
  EXPECT_EQ(find_lone_sample(plan, 9, 0), std::nullopt) << "nor does one behind --steps";
}

TEST(LoneSample, OfAllLanesIsTheOnlyOneOfItsStep) {
  const auto lone = [](int lanes, int batch_size, int64_t samples) {
    return find_lone_sample(plan_of(lanes, batch_size, samples), samples, 0, Lone::kAllLanes);
  };
  EXPECT_EQ(lone(2, 4, 9), (LoneSample{.step = 1, .lane = 0}));
  EXPECT_EQ(lone(2, 4, 10), std::nullopt) << "one of each lane";
  EXPECT_EQ(lone(4, 1, 16), std::nullopt);
  EXPECT_EQ(lone(4, 1, 17), (LoneSample{.step = 4, .lane = 0}));
  EXPECT_EQ(lone(1, 1, 16), (LoneSample{.step = 0, .lane = 0}));
}

// Whose network normalises over the batch, and draws.
struct Normalised : testing_support::TinyRecipe {
  Model make_model(uint64_t seed, const data::Dataset&) const override {
    at::manual_seed(seed);
    torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
    return {.module = net.ptr(), .forward = [net](const data::Batch& batch) mutable {
              return at::dropout(net->forward(batch.data()), 0.5, net->is_training());
            }};
  }
};

// 100 samples.
Parts parts_with(std::shared_ptr<Recipe> recipe, int batch_size) {
  Parts parts = testing_support::parts_of(std::move(recipe));
  parts.plan = plan_of(1, batch_size, parts.data.train->size());
  return parts;
}

TEST(TryLoneSample, RefusesOneForBatchNormAndSaysHowToAvoidIt) {
  const Parts parts = parts_with(std::make_shared<Normalised>(), 33);
  EXPECT_THAT(refusal([&] { try_lone_sample(parts); }),
              AllOf(StartsWith("step 4, lane 0: its batch will have one sample"), HasSubstr("--drop-last"),
                    HasSubstr("more than 1 value per channel")));
  const Parts ones = parts_with(std::make_shared<Normalised>(), 1);
  EXPECT_THAT(refusal([&] { try_lone_sample(ones); }),
              AllOf(StartsWith("step 1, lane 0"), HasSubstr("raise --batch-size")));
  try_lone_sample(parts_with(std::make_shared<Normalised>(), 50));
  try_lone_sample(parts_with(std::make_shared<testing_support::TinyRecipe>(), 33));
}

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// The same with this project's BatchNorm, which takes lanes of one sample where it is a SyncBatchNorm.
struct OwnNormalised : Normalised {
  Model make_model(uint64_t seed, const data::Dataset&) const override {
    at::manual_seed(seed);
    nn::BatchNorm2d net(2);
    return {.module = net.ptr(), .forward = [net](const data::Batch& batch) mutable {
              return net->forward(batch.data().unsqueeze(2).unsqueeze(3)).flatten(1);
            }};
  }
};

RANK_PROGRAM(tries_sync_batch_norm) {
  const auto world = lockstep::testing_support::join_world(context);
  const auto refused = [&](std::shared_ptr<Recipe> recipe, int lanes, int batch_size) {
    Parts parts = testing_support::parts_of(std::move(recipe), world);
    parts.plan = plan_of(lanes, batch_size, parts.data.train->size());
    parts.options.parallel.sync_bn = true;
    parallel::convert_sync_batchnorm(*parts.model.module, world->communicator());
    const auto before = copies_of(parts.model.module->buffers());
    const std::string text = refusal([&] { try_lone_sample(parts); });
    const auto after = parts.model.module->buffers();
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << i;
    return text;
  };
  const auto own = std::make_shared<OwnNormalised>();
  // 100 samples.
  EXPECT_THAT(refused(own, 3, 11), AllOf(StartsWith("step 4: all lanes together will have one sample"),
                                         HasSubstr("more than one value a channel"), HasSubstr("--drop-last")));
  EXPECT_THAT(refused(own, 1, 1), AllOf(StartsWith("step 1: all lanes"), HasSubstr("raise --batch-size")));
  EXPECT_EQ(refused(own, 4, 1), "") << "four samples a step";
  EXPECT_EQ(refused(own, 7, 14), "") << "a last step of two";
  // libtorch's layer looks at the lane's batch before it is joined.
  EXPECT_THAT(refused(std::make_shared<Normalised>(), 7, 14),
              AllOf(StartsWith("step 2, lane 0: its batch will have one sample"), HasSubstr("--drop-last")));
  EXPECT_EQ(refused(std::make_shared<Normalised>(), 5, 10), "");
}

TEST(TryLoneSample, OfSyncBatchNormIsOneOverAllLanesOfAllRanks) {
  for (const int size : {1, 2, 4}) lockstep::testing_support::expect_ranks_pass("tries_sync_batch_norm", size);
}

TEST(TryLoneSample, LeavesBuffersAndGeneratorsAsTheyWere) {
  // Two values a channel.
  struct Wide : Normalised {
    Model make_model(uint64_t seed, const data::Dataset&) const override {
      at::manual_seed(seed);
      torch::nn::Sequential net(torch::nn::BatchNorm1d(1));
      return {.module = net.ptr(), .forward = [net](const data::Batch& batch) mutable {
                return at::dropout(net->forward(batch.data().unsqueeze(1)), 0.5, true);
              }};
    }
  };
  const Parts parts = parts_with(std::make_shared<Wide>(), 33);
  const auto before = copies_of(parts.model.module->buffers());
  ASSERT_EQ(before.size(), 3u);
  at::manual_seed(5);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(5);
  try_lone_sample(parts);
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
  const auto after = parts.model.module->buffers();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << i;
  EXPECT_TRUE(parts.model.module->is_training());
}

}  // namespace
}  // namespace lockstep::train
