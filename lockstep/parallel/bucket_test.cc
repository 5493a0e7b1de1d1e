#include "lockstep/parallel/bucket.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/single_communicator.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct BucketTest : testing::Test {
  comm::SingleCommunicator comm;
  Tensor a = at::empty({4, 3}), b = at::empty({2, 3, 2, 2}, at::MemoryFormat::ChannelsLast);
  Tensor sums = at::zeros({2}, at::kDouble);

  // The gradients that parameters see after a step in which both were 2 everywhere.
  std::vector<Tensor> reduced(const Reduction& reduction, double multiply = 1) {
    Bucket bucket(0, "bucket", {a, b}, sums, reduction);
    bucket.begin(/*loss_scale=*/1, multiply);
    bucket.put(0, at::full_like(a, 2));
    EXPECT_FALSE(bucket.full());
    bucket.put(1, at::full_like(b, 2));
    EXPECT_TRUE(bucket.full());
    bucket.launch(comm);
    const auto seen = bucket.finish();
    EXPECT_EQ(bucket.log().bytes, static_cast<int64_t>(a.nbytes() + b.nbytes()));
    return seen;
  }
};

TEST_F(BucketTest, FlatGradientsShareOnePieceOfMemory) {
  const auto seen = reduced({.flat = true});
  EXPECT_TRUE(seen[0].is_alias_of(seen[1]));
  EXPECT_EQ(seen[1].strides(), b.strides());
  EXPECT_TRUE(at::equal(seen[1], at::full_like(b, 2)));
  EXPECT_EQ(sums.sum().item<double>(), 4 * (12 + 24));
}

TEST_F(BucketTest, FlatGradientsDoNotOverlap) {
  Bucket bucket(0, "bucket", {a, b}, sums, {.flat = true});
  bucket.begin();
  bucket.put(0, at::full_like(a, 2));
  bucket.put(1, at::full_like(b, 3));
  bucket.launch(comm);
  const auto seen = bucket.finish();
  EXPECT_TRUE(at::equal(seen[0], at::full_like(a, 2)));
  EXPECT_TRUE(at::equal(seen[1], at::full_like(b, 3)));
}

TEST_F(BucketTest, FlatGradientsMayBeDetachedAndHeld) {
  Bucket bucket(0, "bucket", {a, b}, sums, {.flat = true});
  std::vector<Tensor> seen;
  for (int step = 1; step < 3; ++step) {
    bucket.begin();
    bucket.put(0, at::full_like(a, step));
    bucket.put(1, at::full_like(b, step));
    bucket.launch(comm);
    seen = bucket.finish();
    for (Tensor& gradient : seen) {
      EXPECT_NO_THROW(gradient.detach_()) << "as an optimizer's zero_grad() does";
      optim::hold_scaled(gradient, 8);
    }
  }
  for (const Tensor& gradient : seen) optim::release(gradient);
  EXPECT_TRUE(at::equal(seen[0], at::full_like(a, 2)));
}

TEST_F(BucketTest, OthersStayWhereTheyAre) {
  const auto seen = reduced({});
  EXPECT_FALSE(seen[0].is_alias_of(seen[1]));
  EXPECT_EQ(sums.sum().item<double>(), 4 * (12 + 24));
}

TEST_F(BucketTest, LowPrecisionGradientsGiveFp32Sums) {
  Bucket bucket(0, "bucket", {a, b}, sums, {});
  bucket.begin();
  bucket.put_low_precision(0, at::full({4, 3}, 2, at::kBFloat16));
  bucket.put(1, at::full_like(b, 2));
  EXPECT_TRUE(bucket.full());
  bucket.launch(comm);
  const auto seen = bucket.finish();
  EXPECT_TRUE(at::equal(seen[0], at::full_like(a, 2)));
  EXPECT_TRUE(at::equal(seen[1], at::full_like(b, 2)));
  EXPECT_EQ(sums.sum().item<double>(), 4 * (12 + 24));
}

TEST_F(BucketTest, AHookTakesThePlaceOfTheFold) {
  const auto hook = make_hook("negate", [](const GradBucket& bucket, comm::Communicator& world) {
    for (auto gradient : bucket.gradients) gradient.neg_();
    return world.fold(bucket.gradients, {.label = bucket.label});
  });
  const auto seen = reduced({.flat = true, .hook = hook});
  EXPECT_TRUE(at::equal(seen[0], at::full_like(a, -2)));
  EXPECT_EQ(sums.sum().item<double>(), 4 * (12 + 24)) << "square sums are taken after it";
}

// As after an error elsewhere in backward, once the bucket was launched.
TEST_F(BucketTest, AStepThatWasLeftHalfWayIsForgotten) {
  for (const bool through_cpu : {false, true}) {
    Bucket bucket(0, "bucket", {a, b}, sums, {.through_cpu = through_cpu});
    for (const int value : {2, 3}) {
      bucket.begin();
      bucket.put(0, at::full_like(a, value));
      bucket.put(1, at::full_like(b, value));
      bucket.launch(comm);
    }
    EXPECT_TRUE(at::equal(bucket.finish()[0], at::full_like(a, 3))) << through_cpu;
  }
}

TEST_F(BucketTest, MultipliedAfterwards) {
  EXPECT_TRUE(at::equal(reduced({}, /*multiply=*/8)[0], at::full_like(a, 16)));
  EXPECT_EQ(sums.sum().item<double>(), 256 * (12 + 24)) << "square sums are taken after it";
}

}  // namespace
}  // namespace lockstep::parallel
