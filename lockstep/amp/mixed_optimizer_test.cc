#include "lockstep/amp/mixed_optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <memory>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::amp {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

const Policy kO2 = make_policy({.opt_level = OptLevel::kO2}), kO3 = make_policy({.opt_level = OptLevel::kO3});

// A parameter in bf16 and one in fp32, and their optimizer: libtorch's or ours.
struct MixedOptimizerTest : testing::TestWithParam<bool> {
  Tensor narrow = at::ones({4}, at::kBFloat16).requires_grad_(), wide = at::ones({4}).requires_grad_();
  std::unique_ptr<torch::optim::Optimizer> sgd = make();

  std::unique_ptr<torch::optim::Optimizer> make() const {
    if (GetParam()) return optim::make_optimizer("sgd", {narrow, wide}, {{"lr", 1.0}});
    return std::make_unique<torch::optim::SGD>(std::vector{narrow, wide}, torch::optim::SGDOptions(1.0));
  }
  void set_gradients(double value) {
    for (const Tensor& parameter : {narrow, wide}) parameter.mutable_grad() = at::full_like(parameter.detach(), value);
  }
};
INSTANTIATE_TEST_SUITE_P(Optimizers, MixedOptimizerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ours" : "Libtorchs"; });

TEST_P(MixedOptimizerTest, StepsMasters) {
  MixedOptimizer optimizer(*sgd, kO2, {});
  EXPECT_EQ(optimizer.is_fused(), GetParam());
  EXPECT_EQ(optimizer.copies_gradients(), !GetParam());
  set_gradients(8);
  optimizer.take_and_update({.grad_multiplier = 1.0 / 4096, .clip_value = 1.0 / 1024});
  for (const Tensor& stepped : optimizer.stepped()) {
    EXPECT_TRUE(at::equal(stepped, at::full({4}, 1 - 1.0f / 1024))) << stepped.scalar_type();
  }
  EXPECT_TRUE(at::equal(narrow, at::ones({4}, at::kBFloat16))) << "rounded";
  optimizer.zero_grad();
  EXPECT_FALSE(narrow.grad().defined() || wide.grad().defined());
}

TEST_P(MixedOptimizerTest, StepsTheParametersWithoutMasters) {
  MixedOptimizer optimizer(*sgd, kO3, {});
  EXPECT_FALSE(optimizer.copies_gradients());
  EXPECT_TRUE(optimizer.stepped()[0].is_same(narrow));
  set_gradients(8);
  EXPECT_TRUE(optimizer.take_gradients(0.125));
  EXPECT_TRUE(at::equal(wide.grad(), at::ones({4})));
  optimizer.update({});
  EXPECT_TRUE(at::equal(narrow, at::zeros({4}, at::kBFloat16)));
  set_gradients(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(optimizer.take_gradients(0.125));
}

TEST_P(MixedOptimizerTest, LoadedMastersAreRoundedIntoTheModel) {
  MixedOptimizer optimizer(*sgd, kO2, {});
  optimizer.load_masters({at::full({4}, 2.001f), at::full({4}, 3.0f)});
  EXPECT_TRUE(at::equal(narrow, at::full({4}, 2.0, at::kBFloat16)));
  EXPECT_TRUE(at::equal(wide, at::full({4}, 3.0f)));
  set_gradients(0);
  optimizer.take_and_update({});
  EXPECT_TRUE(at::equal(optimizer.stepped()[0], at::full({4}, 2.001f))) << "not the rounded weight";
  EXPECT_THAT(refusal([&] { optimizer.load_masters({at::zeros({4})}); }), HasSubstr("1 masters given"));
  EXPECT_THAT(refusal([&] { optimizer.load_masters({at::zeros({3}), at::zeros({4})}); }), HasSubstr("master 0 is [3]"));
}

}  // namespace
}  // namespace lockstep::amp
