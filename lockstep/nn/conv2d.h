// Convolution where libtorch's is slow on CPUs. Deep layers, few pixels and many weights, go as one matrix product each
// way: libtorch spends most of their time on putting weights and their gradients into other layouts. And the input's
// gradient of a depthwise convolution with a stride is a pass of our own.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace lockstep::nn {

// at::conv2d without bias or dilation, autocast's casts included. x: [N, I, H, W], weight: [O, I / groups, k, k'] ->
// [N, O, ⌊(H + 2·padding - k) / stride⌋ + 1, …]. Where pixels are few (a pure function of the shapes) and x and weight
// are bf16 or fp16, channels_last and on the CPU: one product of matrices over x's windows, and two backward; the
// weight's gradient is then channels_last too, so that no copy of it is made. Its sums differ from libtorch's in their
// order. A second derivative through that, or through a depthwise one with a stride, is a BugError.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, int64_t stride, int64_t padding, int64_t groups = 1);

// torch::nn::Conv2d, of the same state and options, computed by conv2d() where it has no bias, dilation or other
// padding than zeros, and a square stride and padding; by libtorch otherwise.
class Conv2dImpl : public torch::nn::Conv2dImpl {
 public:
  using torch::nn::Conv2dImpl::Conv2dImpl;
  at::Tensor forward(const at::Tensor& x);
};
TORCH_MODULE(Conv2d);

}  // namespace lockstep::nn
