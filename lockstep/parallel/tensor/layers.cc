#include "lockstep/parallel/tensor/layers.h"

#include <ATen/ops/linear.h>
#include <c10/core/GradMode.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/tensor/regions.h"

namespace lockstep::parallel::tensor {
namespace {

// This rank's part of a weight, or of a bias, which may be undefined.
at::Tensor own_part(const at::Tensor& whole, int64_t dim, const comm::Communicator& comm, const char* of) {
  if (!whole.defined()) return {};
  const int64_t size = whole.size(dim), ranks = comm.size();
  if (size % ranks != 0) {
    throw ConfigError("tensor parallel: ", of, " of ", size, " can't be divided among ", ranks,
                      " ranks; choose a multiple");
  }
  return whole.detach().narrow(dim, size / ranks * comm.rank(), size / ranks).clone(at::MemoryFormat::Contiguous);
}

}  // namespace

ColumnParallelLinearImpl::ColumnParallelLinearImpl(const torch::nn::Linear& whole, comm::Communicator& comm, bool join)
    : comm_(comm), join_(join) {
  weight = register_parameter("weight", own_part(whole->weight, 0, comm, "a Linear layer's outputs"));
  bias = register_parameter("bias", own_part(whole->bias, 0, comm, "a Linear layer's outputs"));
}

at::Tensor ColumnParallelLinearImpl::forward(const at::Tensor& input) {
  const at::Tensor output = at::linear(enter(input, comm_), weight, bias);
  return join_ ? join_parts(output, -1, comm_) : output;
}

RowParallelLinearImpl::RowParallelLinearImpl(const torch::nn::Linear& whole, comm::Communicator& comm, bool divide)
    : comm_(comm), divide_(divide) {
  weight = register_parameter("weight", own_part(whole->weight, 1, comm, "a Linear layer's inputs"));
  const at::Tensor& added = whole->bias;
  bias = register_parameter("bias", added.defined() ? added.detach().clone() : at::Tensor());
}

at::Tensor RowParallelLinearImpl::forward(const at::Tensor& input) {
  const at::Tensor sum = leave(at::linear(divide_ ? take_part(input, -1, comm_) : input, weight), comm_);
  return bias.defined() ? sum + bias : sum;
}

ChannelParallelConv2dImpl::ChannelParallelConv2dImpl(const torch::nn::Conv2d& whole, comm::Communicator& comm,
                                                     bool join)
    : comm_(comm), tower_(whole->options.groups() > 1), join_(join) {
  const int64_t groups = whole->options.groups(), ranks = comm.size();
  if (tower_ && groups % ranks != 0) {
    throw ConfigError("tensor parallel: a convolution's ", groups, " groups can't be divided among ", ranks,
                      " ranks; choose a multiple");
  }
  const at::Tensor own = own_part(whole->weight, 0, comm, "a convolution's channels");
  const auto& of = whole->options;
  torch::nn::Conv2dOptions options(tower_ ? of.in_channels() / ranks : of.in_channels(), own.size(0), of.kernel_size());
  options.stride(of.stride()).padding(of.padding()).dilation(of.dilation()).padding_mode(of.padding_mode());
  options.groups(tower_ ? groups / ranks : 1).bias(whole->bias.defined());
  conv = register_module("conv", torch::nn::Conv2d(options));
  const c10::AutoGradMode no_grad(false);
  conv->weight.copy_(own);
  if (conv->bias.defined()) conv->bias.copy_(own_part(whole->bias, 0, comm, "a convolution's channels"));
}

at::Tensor ChannelParallelConv2dImpl::forward(const at::Tensor& input) {
  const at::Tensor output = conv->forward(tower_ ? input : enter(input, comm_));
  return join_ ? join_parts(output, 1, comm_) : output;
}

}  // namespace lockstep::parallel::tensor
