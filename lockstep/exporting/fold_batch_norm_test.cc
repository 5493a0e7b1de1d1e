#include "lockstep/exporting/fold_batch_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

namespace lockstep::exporting {
namespace {

struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool bias)
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).groups(1).bias(bias)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(8))) {
    const at::NoGradGuard no_grad;
    norm->weight.uniform_(-2, 2);
    norm->bias.normal_();
    norm->running_mean.normal_();
    norm->running_var.uniform_(0.1, 3);
    eval();
  }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
};
TORCH_MODULE(Net);

at::Tensor computed(const Trace& trace, const at::Tensor& x) {
  torch::jit::Module module = trace.module;
  return module.forward({x}).toTensor();
}

// How many norms are folded; what is computed stays the same in any case.
int folded(const Net& net, const std::function<at::Tensor(Net net, const at::Tensor& x)>& forward) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 3, 8, 8}), before = net->conv->weight.clone();
  Trace trace =
      exporting::trace(*net, [&](const std::vector<at::Tensor>& inputs) { return forward(net, inputs[0]); }, {x});
  const at::Tensor wanted = forward(net, x);
  const int count = fold_batch_norm(trace);
  EXPECT_TRUE(at::allclose(computed(trace, x), wanted, 1e-4, 1e-4));
  EXPECT_TRUE(at::equal(before, net->conv->weight)) << "the network's own filters";
  int left = 0;
  for (const auto* node : trace.graph()->nodes()) left += node->kind() == c10::aten::batch_norm ? 1 : 0;
  EXPECT_EQ(left == 0, count > 0);
  return count;
}

TEST(FoldBatchNorm, ComputesTheSameWithOneOperationLess) {
  at::manual_seed(1);
  for (const bool bias : {false, true}) {
    const auto plain = [](Net net, const at::Tensor& x) { return net->norm(net->conv(x)).relu(); };
    EXPECT_EQ(folded(Net(bias), plain), 1) << bias;
  }
}

TEST(FoldBatchNorm, LeavesNormsWhoseConvolutionIsUsedElsewhere) {
  at::manual_seed(2);
  EXPECT_EQ(folded(Net(true),
                   [](Net net, const at::Tensor& x) {
                     const at::Tensor y = net->conv(x);
                     return net->norm(y) + y;
                   }),
            0);
  EXPECT_EQ(folded(Net(false), [](Net net, const at::Tensor& x) { return net->norm(net->conv(x)) + net->conv(x); }), 0)
      << "the same filters twice";
  EXPECT_EQ(folded(Net(false), [](Net net, const at::Tensor& x) { return net->norm(net->conv(x).relu()); }), 0);
}

TEST(FoldBatchNorm, NamesTheNewBiasBesideTheFilters) {
  Net net(false);
  Trace trace =
      exporting::trace(*net, [&](const std::vector<at::Tensor>& inputs) { return net->norm(net->conv(inputs[0])); },
                       {at::randn({1, 3, 8, 8})});
  ASSERT_EQ(fold_batch_norm(trace), 1);
  EXPECT_EQ(state_value(trace.module, "conv.bias").sizes(), at::IntArrayRef({8}));
}

}  // namespace
}  // namespace lockstep::exporting
