#include "lockstep/exporting/trace.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/nn/max_pool_relu.h"

namespace lockstep::exporting {
namespace {

using testing::ElementsAre;

std::vector<std::string> operations(const Trace& trace) {
  std::vector<std::string> names;
  for (const auto* node : trace.graph()->nodes()) {
    if (node->kind().is_aten()) names.push_back(node->kind().toUnqualString());
  }
  return names;
}

TEST(Trace, HasTheNetworksTensorsUnderTheirNames) {
  struct Two : torch::nn::Module {
    torch::nn::Linear first = register_module("0", torch::nn::Linear(3, 3)),
                      second = register_module("second", torch::nn::Linear(3, 2));
  } net;
  const Trace found = trace(net, [&](const std::vector<at::Tensor>& x) { return net.second(net.first(x[0]).relu_()); },
                            {at::rand({2, 3})});
  EXPECT_THAT(operations(found), ElementsAre("t", "addmm", "relu", "t", "addmm"));
  EXPECT_TRUE(state_value(found.module, "0.weight").is_same(net.first->weight));
  std::vector<std::string> read;
  for (const auto* node : found.graph()->nodes()) {
    for (const auto* input : node->inputs()) {
      if (input->node()->kind() == c10::prim::GetAttr && node->kind().is_aten()) read.push_back(state_name(input));
    }
  }
  EXPECT_THAT(read, testing::UnorderedElementsAre("0.weight", "0.bias", "second.weight", "second.bias"));
}

// Each of our layers that has kernels of its own, on inputs that these take.
TEST(Trace, SeesLibtorchsOperationsInsteadOfOurKernels) {
  nn::BatchNorm2d norm(16);
  norm->eval();
  const at::Tensor x = at::rand({2, 16, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast);
  const Forward forward = [&](const std::vector<at::Tensor>& inputs) {
    return nn::max_pool_relu(norm->forward(inputs[0], nn::Activation::kRelu6, inputs[0]));
  };
  const Trace found = trace(*norm, forward, {x});
  EXPECT_THAT(operations(found), ElementsAre("to", "batch_norm", "add", "hardtanh", "max_pool2d", "relu"));
  EXPECT_NO_THROW(check_trace(found, forward, {x + 1}, "other images"));
}

TEST(Trace, RefusesStatesThatAreNoFloatsOnTheCpu) {
  torch::nn::Linear layer(3, 2);
  layer->to(at::kBFloat16);
  const Forward forward = [&](const std::vector<at::Tensor>& x) { return layer(x[0]); };
  EXPECT_THROW(trace(*layer, forward, {at::rand({2, 3}).to(at::kBFloat16)}), ConfigError);
}

TEST(Trace, IsCheckedOnOtherInputs) {
  const Forward two = [](const std::vector<at::Tensor>& x) { return x[0].view({2, -1}) * 2; };
  const Trace found = trace(torch::nn::Module(), two, {at::rand({2, 3})});
  EXPECT_NO_THROW(check_trace(found, two, {at::rand({2, 5})}, "longer rows"));
  const Forward three = [](const std::vector<at::Tensor>& x) { return x[0] * 3; };
  EXPECT_THROW(check_trace(found, three, {at::rand({2, 3})}, "another network"), ConfigError);
  const Forward nan = [](const std::vector<at::Tensor>& x) { return x[0] * NAN; };
  EXPECT_THROW(check_trace(found, nan, {at::rand({2, 3})}, "another network"), ConfigError);
}

}  // namespace
}  // namespace lockstep::exporting
