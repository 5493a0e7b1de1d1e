#include "lockstep/nn/batch_norm_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>
#include <vector>

#include "lockstep/nn/testing/lane_exchange.h"
#include "lockstep/nn/testing/second_derivatives.h"

namespace lockstep::nn {
namespace {

using testing_support::LaneExchange;
using testing_support::Meeting;

struct Layer {
  at::Tensor weight, bias, mean, var;
  static Layer random(int64_t channels, at::ScalarType dtype) {
    return {(at::rand({channels}) + 0.5).to(dtype), at::randn({channels}).to(dtype), at::randn({channels}).to(dtype),
            (at::rand({channels}) + 0.5).to(dtype)};
  }
  Layer to(at::ScalarType dtype) const {
    return {weight.detach().to(dtype, false, true), bias.detach().to(dtype, false, true), mean.to(dtype, false, true),
            var.to(dtype, false, true)};
  }
  BatchNormArguments arguments(bool training) const {
    return {.weight = weight, .bias = bias, .running_mean = mean, .running_var = var, .training = training};
  }
};

at::Tensor libtorchs(const at::Tensor& x, const BatchNormArguments& a, Activation activation,
                     const at::Tensor& residual) {
  at::Tensor y =
      at::batch_norm(x, a.weight, a.bias, a.running_mean, a.running_var, a.training, a.momentum, a.eps, false);
  if (residual.defined()) y = y + residual;
  if (activation == Activation::kRelu) y = at::relu(y);
  return activation == Activation::kRelu6 ? at::hardtanh(y, 0, 6) : y;
}

at::Tensor ours(const at::Tensor& x, const BatchNormArguments& a, Activation activation, const at::Tensor& residual) {
  return batch_norm(x, a, activation, residual);
}

// x, weight, bias and residual.
template <typename Norm>
auto as_layer(Norm norm, const Layer& layer, Activation activation, bool training) {
  return [norm, layer, activation, training](const std::vector<at::Tensor>& in) {
    BatchNormArguments arguments = layer.arguments(training);
    arguments.weight = in[1];
    arguments.bias = in[2];
    return norm(in[0], arguments, activation, in[3]);
  };
}

void expect_second_derivatives(const at::Tensor& x, Activation activation, const at::Tensor& residual, bool training,
                               double tolerance) {
  const Layer layer = Layer::random(x.size(1), at::kFloat), wide = layer.to(at::kDouble);
  const at::Tensor r = residual.defined() ? residual.to(at::kDouble) : residual;
  SCOPED_TRACE(testing::Message() << x.sizes() << x.dtype() << " activation " << static_cast<int>(activation)
                                  << " residual " << residual.defined() << " training " << training);
  testing_support::expect_near(testing_support::penalty_gradients(as_layer(ours, layer, activation, training),
                                                                  {x, layer.weight, layer.bias, residual}),
                               testing_support::penalty_gradients(as_layer(libtorchs, wide, activation, training),
                                                                  {x.to(at::kDouble), wide.weight, wide.bias, r}),
                               tolerance);
}

TEST(BatchNormGraph, SecondDerivativesAreLibtorchs) {
  at::manual_seed(11);
  for (const bool training : {true, false}) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
      for (const bool with_residual : {false, true}) {
        const at::Tensor x = at::randn({4, 20, 5, 3}).contiguous(at::MemoryFormat::ChannelsLast) * 2 + 1;
        const at::Tensor residual = with_residual ? at::randn_like(x) : at::Tensor();
        expect_second_derivatives(x, activation, residual, training, 1e-4);
        expect_second_derivatives(at::randn({6, 20}), activation, with_residual ? at::randn({6, 20}) : at::Tensor(),
                                  training, 1e-4);
      }
    }
  }
  const at::Tensor half = at::randn({4, 20, 5, 3}).to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  expect_second_derivatives(half, Activation::kNone, {}, true, 3e-2);
}

// With an exchange the lanes' penalties together are that of the joined batch.
TEST(BatchNormGraph, WithAnExchangeTheyAreThoseOfTheWhole) {
  at::manual_seed(12);
  const at::Tensor x = at::randn({6, 20, 3, 2}, at::kDouble), weights = at::randn_like(x);
  const Layer layer = Layer::random(20, at::kDouble);
  const auto penalty = [&](const at::Tensor& part, const at::Tensor& weight, const Layer& own, const auto& exchange) {
    const at::Tensor leaf = part.detach().requires_grad_();
    const at::Tensor y = batch_norm(leaf, own.arguments(true), Activation::kRelu6, {}, exchange);
    const at::Tensor first = torch::autograd::grad({(y * weight).sum()}, {leaf}, {}, true, true)[0];
    ((first.square() * weight).sum() + y.pow(3).sum()).backward();
    return leaf.grad();
  };
  const auto own = [&] {
    Layer copy = layer.to(at::kDouble);
    copy.weight.requires_grad_();
    copy.bias.requires_grad_();
    return copy;
  };
  const Layer whole = own(), first = own(), second = own();
  const at::Tensor want = penalty(x, weights, whole, std::shared_ptr<StatisticsExchange>());
  Meeting meeting(2);
  at::Tensor got[2];
  const auto lane = [&](size_t i, int64_t begin, int64_t count, const Layer& copy) {
    return std::thread([&, i, begin, count, copy] {
      got[i] = penalty(x.narrow(0, begin, count), weights.narrow(0, begin, count), copy,
                       std::shared_ptr<StatisticsExchange>(std::make_shared<LaneExchange>(meeting, i)));
    });
  };
  std::thread one = lane(0, 0, 2, first), two = lane(1, 2, 4, second);
  one.join();
  two.join();
  EXPECT_TRUE(at::allclose(at::cat({got[0], got[1]}), want, 1e-8, 1e-9));
  EXPECT_TRUE(at::allclose(first.weight.grad() + second.weight.grad(), whole.weight.grad(), 1e-8, 1e-9));
  EXPECT_TRUE(at::allclose(first.bias.grad() + second.bias.grad(), whole.bias.grad(), 1e-8, 1e-9));
}

}  // namespace
}  // namespace lockstep::nn
