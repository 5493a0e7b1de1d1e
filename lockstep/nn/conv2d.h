// Convolutions that libtorch computes slowly on CPUs. Deep layers, with few pixels and many weights, become one matrix
// product in each direction: libtorch spends most of its time on converting the layouts of weights and of their
// gradients. The input gradient of a depthwise convolution with a stride is a pass of our own.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace lockstep::nn {

// at::conv2d without bias or dilation, including autocast's casts. x: [N, I, H, W], weight: [O, I / groups, k, k'] ->
// [N, O, ⌊(H + 2·padding - k) / stride⌋ + 1, …].
//
// x and weight that are bf16 or fp16, channels_last and on the CPU go through one matrix product over x's windows, and
// two in the backward, where pixels are few (a pure function of the shapes). The weight's gradient is then
// channels_last too, so that no copy of it is made. The sums are added in another order than libtorch's. A backward
// that is to be differentiated itself (create_graph) is libtorch's.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, int64_t stride, int64_t padding, int64_t groups = 1);

// torch::nn::Conv2d with the same state and options. conv2d() computes it where it has no bias and no dilation, pads
// with zeros, and has square stride and padding; libtorch does otherwise.
class Conv2dImpl : public torch::nn::Conv2dImpl {
 public:
  using torch::nn::Conv2dImpl::Conv2dImpl;
  at::Tensor forward(const at::Tensor& x);
};
TORCH_MODULE(Conv2d);

}  // namespace lockstep::nn
