// Second derivatives of a layer, to compare with libtorch's.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

namespace lockstep::testing_support {

// Weights that differ from element to element, the same for any dtype and memory format.
inline at::Tensor pattern(const at::Tensor& like) {
  return at::arange(like.numel(), at::kDouble).mul_(0.7).cos_().view(like.sizes());
}

// The gradients by `inputs` of a loss with a penalty on f's gradients by all of them. Undefined inputs stay so.
template <typename Layer>
std::vector<at::Tensor> penalty_gradients(Layer f, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> all, leaves;
  for (const at::Tensor& input : inputs) {
    all.push_back(input.defined() ? input.detach().clone().requires_grad_() : input);
    if (input.defined()) leaves.push_back(all.back());
  }
  const auto weighed = [](const at::Tensor& t) { return (t.to(at::kDouble) * pattern(t)).sum(); };
  const at::Tensor y = f(all);
  at::Tensor loss = weighed(y.to(at::kDouble).square());
  const auto first = torch::autograd::grad({weighed(y)}, leaves, {}, /*retain_graph=*/true, /*create_graph=*/true);
  for (const at::Tensor& gradient : first) loss = loss + weighed(gradient.to(at::kDouble).square());
  return torch::autograd::grad({loss}, leaves);
}

// `tolerance` is relative to the norm of each.
inline void expect_near(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].sizes(), want[i].sizes());
    const at::Tensor wide = want[i].to(at::kDouble);
    EXPECT_LE((got[i].to(at::kDouble) - wide).norm().item<double>(), tolerance * wide.norm().item<double>()) << i;
  }
}

}  // namespace lockstep::testing_support
