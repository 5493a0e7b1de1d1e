#include "lockstep/parallel/tensor/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "lockstep/amp/gradient_marks.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/clip.h"
#include "lockstep/parallel/gradients/divided_weights.h"
#include "lockstep/parallel/tensor/regions.h"
#include "lockstep/parallel/tensor/slices.h"

namespace lockstep::parallel::tensor {
namespace {

// Gives the CPU's generator its state back.
class KeptGenerator {
 public:
  KeptGenerator() : state_(generator().get_state()) {}
  ~KeptGenerator() { generator().set_state(state_); }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  static at::Generator generator() { return at::detail::getDefaultCPUGenerator(); }
  at::Tensor state_;
};

// Rank 0's weight, or bias, which may be undefined.
at::Tensor agreed(const at::Tensor& whole, comm::Communicator& comm) {
  const at::Tensor copy = whole.detach().clone(at::MemoryFormat::Contiguous);
  comm.broadcast(copy, 0);
  return copy;
}

// This rank's part of rank 0's.
at::Tensor own_part(const at::Tensor& whole, int64_t dim, comm::Communicator& comm) {
  if (!whole.defined()) return {};
  return own_slice(agreed(whole, comm), dim, comm).clone(at::MemoryFormat::Contiguous);
}

void note_parts(const std::vector<at::Tensor>& weights, const comm::Communicator& comm) {
  for (const at::Tensor& each : weights) {
    if (each.defined()) set_part(each, {.number = comm.rank(), .parts = comm.size()});
  }
}

bool is_trained(const at::Tensor& whole) { return whole.defined() && whole.requires_grad(); }

}  // namespace

ColumnParallelLinearImpl::ColumnParallelLinearImpl(const torch::nn::Linear& whole, comm::Communicator& comm, bool join)
    : comm_(comm), join_(join) {
  const int64_t outputs = whole->weight.size(0);
  check_divides(outputs, comm, "a Linear layer's outputs of ", outputs);
  weight = register_parameter("weight", own_part(whole->weight, 0, comm), is_trained(whole->weight));
  bias = register_parameter("bias", own_part(whole->bias, 0, comm), is_trained(whole->bias));
  note_parts({weight, bias}, comm);
}

at::Tensor ColumnParallelLinearImpl::forward(const at::Tensor& input) {
  inputs_.check(input, comm_);
  const at::Tensor output = at::linear(enter(input, comm_), weight, bias);
  return join_ ? join_parts(output, -1, comm_) : output;
}

RowParallelLinearImpl::RowParallelLinearImpl(const torch::nn::Linear& whole, comm::Communicator& comm, bool divide)
    : comm_(comm), divide_(divide) {
  const int64_t inputs = whole->weight.size(1);
  check_divides(inputs, comm, "a Linear layer's inputs of ", inputs);
  weight = register_parameter("weight", own_part(whole->weight, 1, comm), is_trained(whole->weight));
  bias = register_parameter("bias", whole->bias.defined() ? agreed(whole->bias, comm) : at::Tensor(),
                            is_trained(whole->bias));
  note_parts({weight}, comm);
}

at::Tensor RowParallelLinearImpl::forward(const at::Tensor& input) {
  if (divide_) inputs_.check(input, comm_);
  const at::Tensor sum = leave(at::linear(divide_ ? take_part(input, -1, comm_) : input, weight), comm_);
  return bias.defined() ? sum + bias.to(sum.scalar_type()) : sum;
}

ChannelParallelConv2dImpl::ChannelParallelConv2dImpl(const torch::nn::Conv2d& whole, comm::Communicator& comm,
                                                     bool join)
    : comm_(comm), tower_(whole->options.groups() > 1), join_(join) {
  const int64_t groups = whole->options.groups(), ranks = comm.size();
  const auto& of = whole->options;
  if (tower_) check_divides(groups, comm, "a convolution's ", groups, " groups");
  check_divides(of.out_channels(), comm, "a convolution's channels of ", of.out_channels());
  const int64_t own_inputs = tower_ ? of.in_channels() / ranks : of.in_channels();
  torch::nn::Conv2dOptions options(own_inputs, of.out_channels() / ranks, of.kernel_size());
  options.stride(of.stride()).padding(of.padding()).dilation(of.dilation()).padding_mode(of.padding_mode());
  options.groups(tower_ ? groups / ranks : 1).bias(whole->bias.defined());
  {
    const KeptGenerator kept;  // its first weights, which are replaced, draw numbers
    conv = register_module("conv", torch::nn::Conv2d(options));
  }
  const std::pair<at::Tensor&, const at::Tensor&> parts[] = {{conv->weight, whole->weight}, {conv->bias, whole->bias}};
  for (const auto& [own, all] : parts) {
    if (!all.defined()) continue;
    own.set_data(own_part(all, 0, comm));
    own.requires_grad_(is_trained(all));
  }
  note_parts({conv->weight, conv->bias}, comm);
}

at::Tensor ChannelParallelConv2dImpl::forward(const at::Tensor& input) {
  if (!tower_) inputs_.check(input, comm_);
  const at::Tensor output = conv->forward(tower_ ? input : enter(input, comm_));
  return join_ ? join_parts(output, 1, comm_) : output;
}

double gradient_square_sum(const std::vector<at::Tensor>& weights, comm::Communicator& comm) {
  std::vector<at::Tensor> parts, equal;
  for (const at::Tensor& weight : weights) (is_part(weight) ? parts : equal).push_back(weight);
  if (parts.empty() && comm.size() > 1) {
    throw ConfigError(
        "tensor parallel: none of these weights is a part of one that is divided; give all of the network's "
        "parameters, not their masters, or clip layers that are not divided by optim::clip_grad_norm");
  }
  const double own = amp::square_sum_of_gradients(equal, /*loss_scale=*/1);
  const at::Tensor most = at::tensor({own, -own}, at::kDouble);
  comm.all_reduce(most, comm::ReduceOp::kMax);
  const double largest = most[0].item<double>(), least = -most[1].item<double>();
  if (std::isfinite(largest) && largest - least > 1e-3 * largest) {
    throw ConfigError("tensor parallel: weights that are not divided have gradients of norm ", std::sqrt(least), " to ",
                      std::sqrt(largest),
                      " on different ranks; mark_parts() a layer of each rank's own features, such as a BatchNorm "
                      "between divided layers");
  }
  const at::Tensor sum = at::tensor({amp::square_sum_of_gradients(parts, /*loss_scale=*/1)}, at::kDouble);
  comm.all_reduce(sum, comm::ReduceOp::kSum);
  return sum.item<double>() + largest;  // one on all ranks, which clip by it
}

double clip_grad_norm(const std::vector<at::Tensor>& weights, double max_norm, comm::Communicator& comm) {
  return optim::clip_grad_norm(weights, max_norm, [&] { return std::sqrt(gradient_square_sum(weights, comm)); });
}

void agree(torch::nn::Module& network, comm::Communicator& comm) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> all = network.parameters();
  for (const at::Tensor& buffer : network.buffers()) all.push_back(buffer);
  for (const at::Tensor& each : all) {
    if (is_part(each)) continue;
    const at::Tensor own = each.detach(), whole = own.contiguous();
    comm.broadcast(whole, 0);
    if (!whole.is_same(own)) own.copy_(whole);
  }
}

void mark_parts(torch::nn::Module& layer, const comm::Communicator& comm) {
  note_parts(layer.parameters(), comm);
  note_parts(layer.buffers(), comm);
}

}  // namespace lockstep::parallel::tensor
