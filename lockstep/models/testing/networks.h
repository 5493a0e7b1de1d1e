// What the tests of the convolutional networks share.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/fnv.h"
#include "lockstep/base/text.h"

namespace lockstep::models::testing {

struct Layout {
  size_t tensors = 0;
  int64_t elements = 0;
  uint64_t names_and_shapes = kFnvSeed;  // a hash of the lines "layer1.0.conv1.weight [64, 64, 3, 3]"
  bool operator==(const Layout&) const = default;
};

inline Layout layout_of(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  Layout layout;
  for (const auto& item : tensors) {
    std::string line = item.key() + " [";
    for (int64_t d = 0; d < item.value().dim(); ++d) line += cat(d > 0 ? ", " : "", item.value().size(d));
    layout.names_and_shapes = fnv1a(layout.names_and_shapes, line + "]\n");
    layout.elements += item.value().numel();
    ++layout.tensors;
  }
  return layout;
}

// libtorch's functions on a network's weights, found by their names.
class PlainLayers {
 public:
  explicit PlainLayers(const torch::nn::Module& net) {
    for (const auto& item : net.named_parameters()) tensors_[item.key()] = item.value();
  }
  at::Tensor weight(const std::string& layer) const { return find(layer + ".weight"); }
  at::Tensor bias(const std::string& layer) const { return find(layer + ".bias"); }
  at::Tensor conv(const std::string& layer, const at::Tensor& x, int64_t stride = 1, int64_t groups = 1) const {
    const at::Tensor w = weight(layer);
    return at::conv2d(x, w, bias(layer), stride, w.size(2) / 2, 1, groups);
  }
  at::Tensor norm(const std::string& layer, const at::Tensor& x) const {
    return at::batch_norm(x, weight(layer), bias(layer), {}, {}, true, 0.1, 1e-5, false);
  }

 private:
  at::Tensor find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? at::Tensor() : found->second;
  }
  std::map<std::string, at::Tensor> tensors_;
};

inline std::vector<at::Tensor> gradients(torch::nn::Module& net, const at::Tensor& output) {
  net.zero_grad();
  const at::Tensor target = at::arange(output.numel()).view(output.sizes()).to(at::kFloat) / output.numel();
  (output - target).square().sum().backward();
  std::vector<at::Tensor> result;
  for (const at::Tensor& p : net.parameters()) result.push_back(p.grad().clone());
  return result;
}

// Σ‖a - b‖ ÷ Σ‖b‖.
inline double difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    apart += (a[i] - b[i]).norm().item().toDouble();
    size += b[i].norm().item().toDouble();
  }
  return apart / size;
}

// The network computes what `definition` does, forward and backward, in both memory formats. Gradients get a wide
// berth: one element that rounding moves over a ReLU's corner changes them by as much as 0.01 (libtorch's own are that
// far from those in fp64), a wrong layer by 1.
template <typename Net>
void expect_definition(Net& net, const at::Tensor& images,
                       const std::function<at::Tensor(const PlainLayers&, const at::Tensor&)>& definition) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    for (at::Tensor p : net->parameters()) {
      if (p.dim() == 4) p.set_data(p.contiguous(format));
    }
    const at::Tensor x = images.contiguous(format), output = net->forward(x);
    const at::Tensor expected = definition(PlainLayers(*net), x);
    ASSERT_EQ(output.sizes(), expected.sizes());
    EXPECT_LE(difference({output}, {expected}), 1e-4) << format;
    EXPECT_LE(difference(gradients(*net, output), gradients(*net, expected)), 0.03) << format;
  }
}

// Two networks of one seed have the same weights, one of another seed has not; what is constant is so.
template <typename Make>
void expect_pure(Make make) {
  auto a = make(7);
  at::manual_seed(99);
  auto b = make(7);
  auto other = make(8);
  for (const auto& item : a->named_parameters()) {
    const at::Tensor &p = item.value(), q = other->named_parameters()[item.key()];
    EXPECT_TRUE(p.requires_grad());
    EXPECT_TRUE(at::equal(p, b->named_parameters()[item.key()])) << item.key();
    const bool constant = at::equal(p, at::zeros_like(p)) || at::equal(p, at::ones_like(p));
    EXPECT_EQ(constant, at::equal(p, q)) << item.key();
    EXPECT_TRUE(p.dim() < 2 || !constant) << item.key();
  }
}

}  // namespace lockstep::models::testing
