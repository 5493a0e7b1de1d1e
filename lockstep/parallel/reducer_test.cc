#include "lockstep/parallel/reducer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct ReducerTest : testing::Test {
  comm::SingleCommunicator comm;
  Tensor weight = at::ones({3}).requires_grad_(), bias = at::ones({3}).requires_grad_(), frozen = at::ones({3});
  Reducer reducer{{{"weight", weight}, {"bias", bias}, {"frozen", frozen}}, comm, {}};

  void lane(const Tensor& factor, bool last) {
    reducer.begin_lane(last);
    (weight * factor + bias * frozen).sum().backward();
  }
};

TEST_F(ReducerTest, LanesAddUpInTheLastOne) {
  const Tensor x[] = {at::randn({3}), at::randn({3}), at::randn({3})};
  lane(x[0], false);
  EXPECT_FALSE(weight.grad().defined()) << "moved away until the last lane";
  lane(x[1], false);
  lane(x[2], true);
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), (x[0] + x[1]) + x[2]));
  EXPECT_TRUE(at::equal(bias.grad(), at::full({3}, 3.0f)));
  EXPECT_NEAR(reducer.square_sum(), weight.grad().square().sum().item<double>() + 27, 1e-4);
}

TEST_F(ReducerTest, AnEmptyLaneAddsZero) {
  const Tensor x = at::randn({3});
  lane(x, false);
  reducer.empty_lane(true);
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), x));
}

TEST_F(ReducerTest, GradientsOfAStepReplaceThoseBefore) {
  const Tensor x = at::randn({3});
  for (int step = 0; step < 2; ++step) {
    lane(x, true);
    reducer.finish();
  }
  EXPECT_TRUE(at::equal(weight.grad(), x));
}

TEST_F(ReducerTest, OutsideOfStepsHooksDoNothing) {
  (weight * 2).sum().backward();
  (weight * 2).sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({3}, 4.0f)));
}

TEST_F(ReducerTest, TheFirstThatIsNotFiniteIsNamed) {
  lane(at::ones({3}), true);
  reducer.finish();
  EXPECT_EQ(reducer.first_not_finite(), "");
  lane(at::tensor({1.f, std::numeric_limits<float>::infinity(), 1.f}), true);
  reducer.finish();
  EXPECT_EQ(reducer.first_not_finite(), "weight");
  EXPECT_FALSE(std::isfinite(reducer.square_sum()));
}

TEST_F(ReducerTest, AParameterWithoutGradientIsNamed) {
  reducer.begin_lane(true);
  weight.sum().backward();
  try {
    reducer.finish();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no gradient for bias:"));
  }
  reducer.drop();
  EXPECT_FALSE(weight.grad().defined());
}

TEST(ReducerTensors, WhatBackwardMadeIsFoldedWithoutACopy) {
  comm::SingleCommunicator comm;
  const Tensor linear = at::randn({4, 3}).requires_grad_(), kernel = at::randn({2, 1, 3, 3}).requires_grad_();
  Reducer reducer({{"linear", linear}, {"kernel", kernel}}, comm, {});
  const void *linear_born = nullptr, *kernel_born = nullptr;
  linear.register_hook([&](const Tensor& gradient) { linear_born = gradient.data_ptr(); });
  kernel.register_hook([&](const Tensor& gradient) { kernel_born = gradient.data_ptr(); });
  reducer.begin_lane(true);
  (at::linear(at::randn({5, 3}), linear).sum() + at::conv2d(at::randn({2, 1, 8, 8}), kernel).sum()).backward();
  reducer.finish();
  EXPECT_EQ(linear.grad().data_ptr(), linear_born);
  EXPECT_EQ(kernel.grad().data_ptr(), kernel_born);
}

TEST_F(ReducerTest, AGradientThatSharesMemoryIsCopied) {
  reducer.begin_lane(true);
  const Tensor both = at::cat({weight, bias});  // its backward gives views of one tensor
  (both * at::arange(6)).sum().backward();
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), at::arange(3, at::kFloat)));
  EXPECT_TRUE(at::equal(bias.grad(), at::arange(3, 6, at::kFloat)));
  EXPECT_TRUE(owns_its_memory(weight.grad(), weight));
}

}  // namespace
}  // namespace lockstep::parallel
