#include "lockstep/nn/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/nn/batch_norm.h"

namespace lockstep::nn {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

struct BlockImpl : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 6));
  torch::nn::Dropout drop = register_module("drop", torch::nn::Dropout(0.5));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(6, 6));
  Tensor forward(const Tensor& x) { return second->forward(drop->forward(first->forward(x).tanh())); }
};
TORCH_MODULE(Block);

struct Trial {
  std::vector<Tensor> values;  // output, and the gradients of x and of the parameters
  int calls = 0;
};

// `turns` blocks of the same weights, one after the other.
Trial run(bool with, int turns, const CheckpointOptions& options = {}) {
  at::manual_seed(3);
  Block block;
  const Tensor x = at::randn({4, 6}).requires_grad_();
  Trial trial;
  const auto function = [&](const Tensor& in) {
    ++trial.calls;
    return block->forward(in);
  };
  Tensor y = x;
  for (int turn = 0; turn < turns; ++turn) y = with ? checkpoint(function, y, options) : function(y);
  at::rand({2});  // draws between forward and backward
  y.square().sum().backward();
  trial.values = {y.detach(), x.grad(), at::rand({3})};
  for (const auto& parameter : block->parameters()) trial.values.push_back(parameter.grad());
  return trial;
}

void expect_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

TEST(Checkpoint, HasTheBitsOfTheRunWithoutIt) {
  for (const int turns : {1, 3}) {
    const Trial with = run(true, turns), without = run(false, turns);
    expect_same_bits(with.values, without.values);
    EXPECT_EQ(without.calls, turns);
    EXPECT_EQ(with.calls, 2 * turns) << "each is called again in backward";
  }
}

TEST(Checkpoint, WithoutTheRandomStateMasksAreNew) {
  const Trial with = run(true, 1, {.preserve_rng_state = false}), without = run(false, 1);
  EXPECT_TRUE(at::equal(with.values[0], without.values[0]));
  EXPECT_FALSE(at::equal(with.values[1], without.values[1]));
}

TEST(Checkpoint, TakesAndGivesSeveralTensors) {
  const Tensor a = at::randn({3}).requires_grad_(), b = at::randn({3}), w = at::randn({3}).requires_grad_();
  const auto outputs = checkpoint(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] * w, in[1].argmax(), in[1] * 2, in[0] + in[1] * w};
      },
      {a, b});
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_FALSE(outputs[1].requires_grad());
  EXPECT_FALSE(outputs[2].requires_grad());
  (outputs[0] * 3).sum().backward();
  EXPECT_TRUE(at::equal(a.grad(), w.detach() * 3));
  EXPECT_TRUE(at::equal(w.grad(), a.detach() * 3)) << "the other output has no gradient";
}

TEST(Checkpoint, GradAndSecondDerivativesGoThrough) {
  const auto penalty = [](bool with) {
    at::manual_seed(4);
    torch::nn::Linear layer(5, 5);
    const Tensor x = at::randn({2, 5}).requires_grad_();
    const auto function = [&](const Tensor& in) { return layer->forward(in).tanh(); };
    const Tensor hidden = x * 2;
    const Tensor y = with ? checkpoint(function, hidden) : function(hidden);
    const Tensor slope = torch::autograd::grad({y.sum()}, {x}, {}, true, /*create_graph=*/true)[0];
    slope.square().sum().backward();
    return std::vector<Tensor>{slope.detach(), x.grad(), layer->weight.grad()};
  };
  const auto with = penalty(true), without = penalty(false);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(at::allclose(with[i], without[i], 1e-5, 1e-6)) << i;
}

TEST(Checkpoint, WithoutGradientsItIsACall) {
  const at::NoGradGuard no_grad;
  torch::nn::Linear layer(2, 2);
  EXPECT_FALSE(checkpoint([&](const Tensor& x) { return layer->forward(x); }, at::ones({1, 2})).requires_grad());
}

TEST(Checkpoint, IsCalledAgainUnderItsAutocast) {
  torch::nn::Linear layer(4, 4);
  std::vector<at::ScalarType> seen;
  const auto function = [&](const Tensor& x) {
    const Tensor y = layer->forward(x);
    seen.push_back(y.scalar_type());
    return y;
  };
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const Tensor y = checkpoint(function, at::randn({2, 4}));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  y.sum().backward();
  EXPECT_THAT(seen, testing::ElementsAre(at::kBFloat16, at::kBFloat16));
  EXPECT_EQ(layer->weight.grad().scalar_type(), at::kFloat);
}

// Statistics are those of the run without, with kernels of our own and with libtorch's.
template <typename Norm>
std::vector<Tensor> statistics(bool with, at::MemoryFormat format, bool name_buffers) {
  at::manual_seed(5);
  Norm norm(20);
  CheckpointOptions options;
  if (name_buffers) options.buffers = norm->buffers();
  const Tensor x = at::randn({4, 20, 3, 3}).contiguous(format).requires_grad_();
  const auto function = [&](const Tensor& in) { return norm->forward(in); };
  (with ? checkpoint(function, x, options) : function(x)).pow(3).sum().backward();
  return {norm->running_mean, norm->running_var, norm->num_batches_tracked, x.grad(), norm->weight.grad()};
}

TEST(Checkpoint, BatchNormCountsABatchOnce) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    expect_same_bits(statistics<BatchNorm2d>(true, format, false), statistics<BatchNorm2d>(false, format, false));
    expect_same_bits(statistics<torch::nn::BatchNorm2d>(true, format, true),
                     statistics<torch::nn::BatchNorm2d>(false, format, false));
    EXPECT_THAT(refusal([&] { statistics<torch::nn::BatchNorm2d>(true, format, false); }),
                HasSubstr("name the module's buffers()"));
  }
  torch::nn::BatchNorm2d evaluated(2);
  evaluated->eval();
  const Tensor x = at::randn({2, 2, 3, 3}).requires_grad_();
  checkpoint([&](const Tensor& in) { return evaluated->forward(in); }, x).sum().backward();
}

// What libtorch calls BatchNorm with are copies of the statistics, one for each sample.
std::vector<Tensor> instance_statistics(bool with, const at::IntArrayRef& sizes, bool name_buffers) {
  at::manual_seed(5);
  const Tensor mean = at::zeros({3}), var = at::ones({3}), weight = at::ones({3}).requires_grad_();
  const Tensor bias = at::zeros({3}).requires_grad_(), x = at::randn(sizes).requires_grad_();
  CheckpointOptions options;
  if (name_buffers) options.buffers = {mean, var};
  const auto function = [&](const Tensor& in) {
    return at::instance_norm(in, weight, bias, mean, var, /*use_input_stats=*/true, 0.1, 1e-5, /*cudnn_enabled=*/false);
  };
  (with ? checkpoint(function, x, options) : function(x)).pow(3).sum().backward();
  return {mean, var, x.grad(), weight.grad()};
}

TEST(Checkpoint, InstanceNormCountsABatchOnce) {
  for (const int64_t samples : {1, 4}) {
    expect_same_bits(instance_statistics(true, {samples, 3, 5}, true),
                     instance_statistics(false, {samples, 3, 5}, false));
    EXPECT_THAT(refusal([&] {
                  instance_statistics(true, {samples, 3, 5}, false);
                }),
                HasSubstr("BatchNorm or InstanceNorm of libtorch's"));
  }
}

// A hook of a parameter, or of the input, halves the gradient.
std::vector<Tensor> hooked(bool with, bool create_graph) {
  at::manual_seed(6);
  torch::nn::Linear layer(4, 4);
  const Tensor x = at::randn({2, 4}).requires_grad_(), hidden = x * 3;
  std::vector<int> calls(2);
  const auto halve = [&calls](size_t hook) {
    return [&calls, hook](const Tensor& gradient) {
      ++calls[hook];
      return gradient * 0.5;
    };
  };
  layer->weight.register_hook(halve(0));
  hidden.register_hook(halve(1));
  const auto function = [&](const Tensor& in) { return layer->forward(in).tanh(); };
  const Tensor y = with ? checkpoint(function, hidden) : function(hidden);
  const auto found = torch::autograd::grad({y.square().sum()}, {x, layer->weight}, {}, true, create_graph);
  EXPECT_EQ(calls, (std::vector<int>{1, 1})) << "create_graph: " << create_graph;
  y.square().sum().backward({}, /*retain_graph=*/true, create_graph);
  return {found[0].detach(), found[1].detach(), x.grad().detach(), layer->weight.grad().detach()};
}

TEST(Checkpoint, HooksOfParametersAndInputsRunOnce) {
  for (const bool create_graph : {false, true}) {
    const auto with = hooked(true, create_graph), without = hooked(false, create_graph);
    for (size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(at::allclose(with[i], without[i], 1e-5, 1e-6)) << i;
  }
}

TEST(Checkpoint, AGraphFromOutsideIsRefused) {
  const Tensor x = at::ones({2}).requires_grad_(), outside = x * 2;
  EXPECT_THAT(refusal([&] { checkpoint([&](const Tensor& in) { return in * outside; }, x); }),
              HasSubstr("uses a result of MulBackward"));
}

TEST(Checkpoint, AFunctionThatDoesSomethingElseIsRefused) {
  const Tensor x = at::ones({2}).requires_grad_();
  int calls = 0;
  const auto outputs = checkpoint(
      [&](const std::vector<Tensor>& in) {
        return ++calls == 1 ? std::vector<Tensor>{in[0] * 2} : std::vector<Tensor>{in[0] * 2, in[0]};
      },
      std::vector<Tensor>{x});
  EXPECT_THAT(refusal([&] { outputs[0].sum().backward(); }), HasSubstr("must do the same both times"));
}

}  // namespace
}  // namespace lockstep::nn
