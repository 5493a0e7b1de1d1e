#include "lockstep/compat/apex/larc.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <algorithm>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/lars.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::apex::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

constexpr double kLr = 0.5, kDecay = 0.1;

// ‖p‖ = 5 and ‖g‖ = 10, so the ratio is trust · 5 / (10 + 0.5).
struct LarcTest : testing::Test {
  Tensor p = at::tensor({3.0f, 4.0f}).requires_grad_(), zero = at::zeros({2}).requires_grad_();
  Tensor g = at::tensor({8.0f, -6.0f});

  void set_gradients() {
    p.mutable_grad() = g.clone();
    zero.mutable_grad() = g.clone();
  }
  // What SGD gives: its rate times what the ratio makes of the gradient.
  void expect_stepped(double factor) {
    const Tensor from = at::tensor({3.0f, 4.0f});
    EXPECT_TRUE(at::allclose(p, from - kLr * factor * (g + kDecay * from))) << p;
    EXPECT_TRUE(at::allclose(zero, -kLr * g)) << "a norm of 0";
  }
};

TEST_F(LarcTest, FollowsTheFormula) {
  for (const bool clip : {false, true}) {
    for (const double trust : {0.02, 10.0}) {
      p = at::tensor({3.0f, 4.0f}).requires_grad_();
      zero = at::zeros({2}).requires_grad_();
      torch::optim::SGD sgd({p, zero}, torch::optim::SGDOptions(kLr).weight_decay(kDecay));
      LARC larc(sgd, {.trust_coefficient = trust, .clip = clip});
      set_gradients();
      larc.step();
      const double ratio = trust * 5 / (10 + kDecay * 5 + 1e-8);
      expect_stepped(clip ? std::min(ratio / kLr, 1.0) : ratio);
      const auto& options = static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options());
      EXPECT_EQ(options.weight_decay(), kDecay) << "as before";
    }
  }
}

TEST_F(LarcTest, WithoutClipItIsLars) {
  const Tensor q = p.detach().clone().requires_grad_();
  const optim::NamedOptions options = {{"lr", 5.0}, {"momentum", 0.9}, {"weight_decay", kDecay}};
  const auto sgd = optim::make_optimizer("sgd", {p}, options), lars = optim::make_optimizer("lars", {q}, options);
  LARC larc(*sgd, {.trust_coefficient = 1e-3, .clip = false});
  for (int step = 0; step < 4; ++step) {
    p.mutable_grad() = g * (step + 1);
    q.mutable_grad() = g * (step + 1);
    larc.step();
    lars->step();
    EXPECT_TRUE(at::allclose(p, q)) << step;
  }
}

TEST_F(LarcTest, TakesOtherOptimizers) {
  torch::optim::Adam adam({p, zero}, torch::optim::AdamOptions(kLr).weight_decay(kDecay));
  LARC larc(adam);
  set_gradients();
  larc.step();
  larc.zero_grad();
  EXPECT_FALSE(p.grad().defined());
  torch::optim::LBFGS lbfgs({p});
  EXPECT_THAT(refusal([&] { LARC(lbfgs).step(); }), HasSubstr("no weight_decay that can be set"));
  EXPECT_THAT(refusal([&] { LARC(adam, {.trust_coefficient = -1}); }), HasSubstr("trust_coefficient -1"));
}

}  // namespace
}  // namespace lockstep::apex::parallel
