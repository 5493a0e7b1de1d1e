#include "lockstep/compat/apex/fp16_optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>
#include <memory>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::apex::fp16_utils {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

// A parameter in fp16 and one in fp32, and their optimizer: libtorch's or ours.
struct FP16OptimizerTest : testing::TestWithParam<bool> {
  Tensor narrow = at::zeros({4}, at::kHalf).requires_grad_(), wide = at::zeros({4}).requires_grad_();
  std::unique_ptr<torch::optim::Optimizer> sgd = make();

  std::unique_ptr<torch::optim::Optimizer> make() const {
    if (GetParam()) return optim::make_optimizer("sgd", {narrow, wide}, {{"lr", 1.0}});
    return std::make_unique<torch::optim::SGD>(std::vector{narrow, wide}, torch::optim::SGDOptions(1.0));
  }
  Tensor loss(double factor = 1) const { return ((narrow.to(at::kFloat) + wide) * factor).sum(); }
  Tensor master() const { return sgd->param_groups()[0].params()[0]; }
};
INSTANTIATE_TEST_SUITE_P(Optimizers, FP16OptimizerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ours" : "Libtorchs"; });

TEST_P(FP16OptimizerTest, StepsMasters) {
  FP16_Optimizer optimizer(*sgd, {.static_loss_scale = 1024});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    optimizer.backward(loss(0.001));
    EXPECT_EQ(narrow.grad().scalar_type(), at::kHalf);
    EXPECT_TRUE(optimizer.step());
  }
  EXPECT_EQ(master().scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(master(), at::full({4}, -0.002f), 1e-3));
  EXPECT_TRUE(at::equal(narrow, master().to(at::kHalf)));
  EXPECT_TRUE(at::allclose(wide, at::full({4}, -0.002f), 1e-4));
}

TEST_P(FP16OptimizerTest, LossesAddUpUntilMastersTakeThem) {
  FP16_Optimizer optimizer(*sgd, {.static_loss_scale = 8});
  optimizer.backward(loss(), /*update_master_grads=*/false);
  EXPECT_THAT(refusal([&] { optimizer.step(); }), HasSubstr("without update_master_grads()"));
  optimizer.backward(loss(2));
  for (const Tensor& gradient : optimizer.inspect_master_grad_data())
    EXPECT_TRUE(at::equal(gradient, at::full({4}, 3.0f)));
  EXPECT_THAT(refusal([&] { optimizer.backward(loss()); }), HasSubstr("have their gradients already"));
  EXPECT_NEAR(optimizer.clip_master_grads(1), 3 * std::sqrt(8.0), 1e-5);
  optimizer.step();
  EXPECT_TRUE(at::allclose(master(), at::full({4}, static_cast<float>(-1 / std::sqrt(8.0))), 1e-4));
  optimizer.zero_grad();
  EXPECT_FALSE(narrow.grad().defined());
}

TEST_P(FP16OptimizerTest, AnOverflowSkipsTheStep) {
  FP16_Optimizer optimizer(*sgd, {.dynamic_loss_scale = true, .dynamic_loss_args = {.init_scale = 16}});
  optimizer.backward(loss(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(optimizer.overflow());
  EXPECT_EQ(optimizer.clip_master_grads(1), -1);
  EXPECT_FALSE(optimizer.step());
  EXPECT_EQ(optimizer.loss_scale(), 8);
  EXPECT_TRUE(at::equal(narrow, at::zeros({4}, at::kHalf)));
  optimizer.zero_grad();
  EXPECT_FALSE(optimizer.overflow());
  optimizer.set_loss_scale(4);
  optimizer.backward(loss());
  EXPECT_TRUE(at::equal(narrow.grad(), at::full({4}, 4.0, at::kHalf)));
  EXPECT_TRUE(optimizer.step());
  EXPECT_THAT(refusal([&] { optimizer.set_loss_scale(0); }), HasSubstr("above 0"));
}

// As DistributedDataParallel broadcasts them.
TEST_P(FP16OptimizerTest, MastersBeginWithTheWeightsOfTheFirstStep) {
  FP16_Optimizer optimizer(*sgd);
  {
    const at::NoGradGuard no_grad;
    narrow.fill_(3);
  }
  optimizer.backward(loss());
  optimizer.step();
  EXPECT_TRUE(at::equal(master(), at::full({4}, 2.0f)));
}

TEST_P(FP16OptimizerTest, GoesOnFromItsState) {
  FP16_Optimizer optimizer(*sgd, {.dynamic_loss_scale = true});
  auto state = optimizer.state_dict();
  ASSERT_EQ(state.fp32_from_fp16.size(), 1u);
  state.fp32_from_fp16[0].fill_(1.0001f);
  state.loss_scaler["scale"] = state.loss_scaler["loss_scale"] = 64;
  optimizer.load_state_dict(state);
  EXPECT_EQ(optimizer.loss_scale(), 64);
  EXPECT_TRUE(at::equal(narrow, at::ones({4}, at::kHalf)));
  optimizer.backward(loss());
  optimizer.step();
  EXPECT_TRUE(at::allclose(master(), at::full({4}, 0.0001f), 1e-2)) << "more exact than the weights";
  state.fp32_from_fp16.push_back(at::zeros({1}));
  EXPECT_THAT(refusal([&] { optimizer.load_state_dict(state); }), HasSubstr("from number 1 on"));
  state.dynamic_loss_scale = false;
  EXPECT_THAT(refusal([&] { optimizer.load_state_dict(state); }), HasSubstr("a static loss scale"));
}

TEST_P(FP16OptimizerTest, ComesBeforeTheFirstStep) {
  if (GetParam()) {
    wide.mutable_grad() = at::ones({4});
    sgd->step();
    EXPECT_THAT(refusal([&] { FP16_Optimizer{*sgd}; }), HasSubstr("before the first one"));
  }
}

}  // namespace
}  // namespace lockstep::apex::fp16_utils
