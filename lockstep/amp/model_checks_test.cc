#include "lockstep/amp/model_checks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::amp {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

// What DistributedDataParallel puts on its parameters.
struct Hook final : torch::autograd::PostAccumulateGradHook {
  void operator()(const torch::autograd::Variable&) override {}
};

struct ModelChecksTest : testing::Test {
  torch::nn::Linear net{2, 2};
  std::vector<torch::nn::Module*> models = {net.get()};
};

TEST_F(ModelChecksTest, WrappedModelsAreRefused) {
  EXPECT_EQ(check_models(models), at::Device(at::kCPU));
  torch::autograd::impl::set_post_acc_grad_hooks(net->weight, std::make_unique<Hook>());
  EXPECT_THAT(
      refusal([&] { check_models(models); }),
      HasSubstr(
          "weight has a post-accumulate-grad hook, as in a DistributedDataParallel; initialize first, then wrap"));
}

TEST_F(ModelChecksTest, DevicesAreLookedAt) {
  net->bias = net->register_parameter("other", at::empty({2}, at::Device(at::kMeta)));
  EXPECT_THAT(refusal([&] { check_models(models); }), HasSubstr("other is on meta; expected cpu or cuda"));
  for (const auto dtype : {at::kHalf, at::kBFloat16}) check_device(at::kCPU, make_policy({.dtype = dtype}));
  EXPECT_THAT(refusal([&] { check_models({}); }), HasSubstr("no parameters"));
}

// One that this libtorch has no kernels for computes in nothing.
TEST_F(ModelChecksTest, ADtypeThatTheDeviceLacksIsRefused) {
  const at::Device lacking(at::kXLA, 0);
  EXPECT_EQ(refusal([&] { check_device(lacking, make_policy({.dtype = at::kHalf})); }),
            "amp: xla:0 does not compute in Half; take bf16, or O0");
  EXPECT_EQ(refusal([&] { check_device(lacking, make_policy({.dtype = at::kBFloat16})); }),
            "amp: xla:0 does not compute in BFloat16; take fp16, or O0");
  check_device(lacking, make_policy({.opt_level = OptLevel::kO0}));
}

TEST_F(ModelChecksTest, AdagradsStateBeforeItsFirstStepIsNone) {
  const Policy o2 = make_policy({.opt_level = OptLevel::kO2});
  torch::optim::Adagrad libtorchs(net->parameters());
  check_optimizers({&libtorchs}, models, o2);
  net->forward(at::ones({1, 2})).sum().backward();
  libtorchs.step();
  EXPECT_THAT(refusal([&] { check_optimizers({&libtorchs}, models, o2); }), HasSubstr("has taken steps already"));
  // One that keeps no state is noticed as well.
  const auto plain = optim::make_optimizer("sgd", net->parameters(), {});
  check_optimizers({plain.get()}, models, o2);
  plain->step();
  EXPECT_THAT(refusal([&] { check_optimizers({plain.get()}, models, o2); }), HasSubstr("has taken steps already"));
}

TEST_F(ModelChecksTest, OptimizersThatHaveSteppedGetNoMasters) {
  const Policy o1 = make_policy({.opt_level = OptLevel::kO1}), o2 = make_policy({.opt_level = OptLevel::kO2});
  auto ours = optim::make_optimizer("adam", net->parameters(), {});
  torch::optim::Adam libtorchs(net->parameters());
  net->forward(at::ones({1, 2})).sum().backward();
  for (torch::optim::Optimizer* optimizer :
       {static_cast<torch::optim::Optimizer*>(ours.get()), static_cast<torch::optim::Optimizer*>(&libtorchs)}) {
    check_optimizers({optimizer}, models, o2);
    optimizer->step();
    check_optimizers({optimizer}, models, o1);
    EXPECT_THAT(refusal([&] { check_optimizers({optimizer}, models, o2); }), HasSubstr("has taken steps already"));
  }
}

TEST_F(ModelChecksTest, AModelIsInitializedOnceAtATime) {
  {
    const InitializedModels once(models, nullptr);
    EXPECT_THAT(refusal([&] { InitializedModels twice(models, nullptr); }),
                HasSubstr("a model (weight) is in mixed precision already"));
  }
  const InitializedModels again(models, nullptr);
}

}  // namespace
}  // namespace lockstep::amp
