#include "lockstep/parallel/bucket_queue.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;

// Keeps the indices of the buckets that are launched, and folds them.
struct BucketQueueTest : testing::Test {
  comm::SingleCommunicator comm;
  std::vector<size_t> launched;
  std::vector<uint64_t> steps;  // of the first bucket
  Tensor first = at::ones({4}), table = at::ones({4, 2}), second = at::ones({3}), third = at::ones({2});
  DdpOptions options{.buckets = {.bucket_mb = 1e-6, .first_bucket_mb = 1e-6},
                     .comm_hook = make_hook("note", [this](const GradBucket& bucket, comm::Communicator& world) {
                       launched.push_back(bucket.index);
                       if (bucket.index == 0) steps.push_back(bucket.step);
                       return world.fold(bucket.gradients, {.label = bucket.label});
                     })};
  BucketQueue queue{
      {{"first", first}, {"table", table, /*sparse=*/true}, {"second", second}, {"third", third}}, comm, options};

  void put(size_t parameter, const Tensor& gradient) {
    queue.put(parameter, gradient.clone());
    queue.launch_full();
  }
};

TEST_F(BucketQueueTest, LaunchesInTheBucketsOrder) {
  ASSERT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.log(0).label, "bucket 1/3 (third)");
  for (int step = 0; step < 2; ++step) {
    launched.clear();
    queue.begin_step();
    put(0, first * 2);
    put(2, second * 3);
    EXPECT_TRUE(launched.empty()) << "the first bucket is third's, as backward begins at the end";
    put(3, third);
    EXPECT_EQ(launched, (std::vector<size_t>{0, 1, 2}));
    const auto sums = queue.finish();
    EXPECT_TRUE(at::equal(sums[0], first * 2));
    EXPECT_FALSE(sums[1].defined()) << "sparse";
    EXPECT_TRUE(at::equal(sums[2], second * 3));
    EXPECT_EQ(queue.square_sum(), 4 * 4 + 3 * 9 + 2);
    EXPECT_EQ(queue.first_not_finite(), std::nullopt);
  }
}

TEST_F(BucketQueueTest, TheFirstThatIsNotFiniteIsInTheBucketsOrder) {
  queue.begin_step();
  put(0, first * std::numeric_limits<float>::infinity());
  put(2, second * std::numeric_limits<float>::quiet_NaN());
  put(3, third);
  queue.finish();
  EXPECT_EQ(queue.first_not_finite(), 2u);
}

TEST_F(BucketQueueTest, AFailedStepLeavesNothing) {
  queue.begin_step();
  put(3, third * 5);
  queue.drop();
  queue.begin_step();
  for (const size_t parameter : {3, 2, 0}) put(parameter, at::ones({parameter == 0 ? 4 : parameter == 2 ? 3 : 2}));
  EXPECT_TRUE(at::equal(queue.finish()[3], third));
}

TEST_F(BucketQueueTest, AStepThatWasLeftHalfWayIsInTheNumbersOfLaterOnes) {
  const auto numbers = [&](int fails) {
    BucketQueue alone({{"third", third}}, comm, options);
    steps.clear();
    for (int step = 0; step < 4; ++step) {
      alone.begin_step();
      alone.put(0, third.clone());
      alone.launch_full();
      if (step == fails) {
        alone.drop();
      } else {
        alone.finish();
      }
    }
    return steps;
  };
  const auto never = numbers(-1), once = numbers(1);
  EXPECT_EQ(once, numbers(1));
  ASSERT_EQ(once.size(), 4u);
  for (const size_t step : {0, 1}) EXPECT_EQ(once[step], never[step]);
  for (const size_t step : {2, 3}) EXPECT_NE(once[step], never[step]);
}

}  // namespace
}  // namespace lockstep::parallel
