// A small network that can be cloned, its batches, and a comparison of gradients.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/nn/batch_norm.h"

namespace lockstep::parallel {

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  explicit NetImpl(double dropout = 0) : rate(dropout) { NetImpl::reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(1, 6, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(6));
    own_norm = register_module("own_norm", nn::BatchNorm2d(6));
    drop = register_module("drop", torch::nn::Dropout(rate));
    linear = register_module("linear", torch::nn::Linear(6 * 36, 5));
    unused = register_module("unused", torch::nn::Linear(2, 2));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = own_norm->forward(at::relu(norm->forward(conv->forward(x))));
    return linear->forward(drop->forward(hidden.flatten(1)));
  }
  double rate;
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  nn::BatchNorm2d own_norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear linear{nullptr}, unused{nullptr};
};

inline std::shared_ptr<NetImpl> net_of(double dropout = 0) {
  at::manual_seed(5);
  return std::make_shared<NetImpl>(dropout);
}
inline at::Tensor images(int64_t samples = 8) {
  at::manual_seed(11);
  return at::rand({samples, 1, 8, 8});
}
inline at::Tensor labels(int64_t samples = 8) { return at::arange(samples).remainder(5); }

inline std::map<std::string, at::Tensor> gradients_of(const torch::nn::Module& net) {
  std::map<std::string, at::Tensor> all;
  for (const auto& parameter : net.named_parameters()) all[parameter.key()] = parameter.value().grad();
  return all;
}

inline void expect_close(const torch::nn::Module& a, const torch::nn::Module& b, double within = 1e-5) {
  const auto of_a = gradients_of(a), of_b = gradients_of(b);
  for (const auto& [name, gradient] : of_a) {
    ASSERT_EQ(gradient.defined(), of_b.at(name).defined()) << name;
    if (gradient.defined()) EXPECT_LT((gradient - of_b.at(name)).abs().max().item<double>(), within) << name;
  }
}

}  // namespace lockstep::parallel
