// Layers whose weights are divided among the ranks of a group: for Linear layers that hold most of a network's weights,
// and for towers of convolutions, as AlexNet had them on two GPUs.
//
// Each is made from the whole layer, of which rank 0's counts, and keeps this rank's part of it: a collective. A frozen
// layer stays frozen. A pair of ColumnParallelLinear and RowParallelLinear, with whatever works on each feature by
// itself between them, communicates once a pass. Weights that are divided have gradients of their own on each rank;
// those of all other layers are equal on all ranks of the group, for their inputs are: agree() has them begin so.
//
// A divided layer compares its inputs over ranks, in training and now and then: with other samples, or other weights
// before it, it throws ConfigError.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/tensor/equal_inputs.h"

namespace lockstep::parallel::tensor {

// Divides the output features. The input is equal on all ranks, [*, in]; the output is this rank's part, [*, out /
// ranks], or with `join` the whole one. `comm` outlives the layer. Throws ConfigError where the features can't be
// divided.
class ColumnParallelLinearImpl : public torch::nn::Module {
 public:
  ColumnParallelLinearImpl(const torch::nn::Linear& whole, comm::Communicator& comm, bool join = false);
  at::Tensor forward(const at::Tensor& input);

  at::Tensor weight, bias;  // [out / ranks, in], [out / ranks]; no bias where the whole has none

 private:
  comm::Communicator& comm_;
  bool join_;
  EqualInputs inputs_;
};
TORCH_MODULE(ColumnParallelLinear);

// Divides the input features. The input is this rank's part, [*, in / ranks], or with `divide` the whole one; the
// output is whole and equal on all ranks.
class RowParallelLinearImpl : public torch::nn::Module {
 public:
  RowParallelLinearImpl(const torch::nn::Linear& whole, comm::Communicator& comm, bool divide = false);
  at::Tensor forward(const at::Tensor& input);

  at::Tensor weight, bias;  // [out, in / ranks], [out]: the bias is equal on all ranks

 private:
  comm::Communicator& comm_;
  bool divide_;
  EqualInputs inputs_;
};
TORCH_MODULE(RowParallelLinear);

// Divides the output channels. Of a convolution without groups the input is equal on all ranks. One whose groups can be
// divided among the ranks takes this rank's part of the channels, and communicates nothing: a tower. The output is this
// rank's channels, or with `join` all of them.
class ChannelParallelConv2dImpl : public torch::nn::Module {
 public:
  ChannelParallelConv2dImpl(const torch::nn::Conv2d& whole, comm::Communicator& comm, bool join = false);
  at::Tensor forward(const at::Tensor& input);

  torch::nn::Conv2d conv{nullptr};  // this rank's

 private:
  comm::Communicator& comm_;
  bool tower_, join_;
  EqualInputs inputs_;
};
TORCH_MODULE(ChannelParallelConv2d);

// Gives all ranks rank 0's weights and buffers of everything in the network that is not divided. A collective.
void agree(torch::nn::Module& network, comm::Communicator& comm);

// Says that a layer of one's own between divided ones has weights of this rank's features alone, such as a BatchNorm of
// them. Its weights and buffers count as parts then.
void mark_parts(torch::nn::Module& layer, const comm::Communicator& comm);

// The sum of squares of all gradients of a network with such layers: of the parts on all ranks, and of weights that are
// equal on all ranks once. Clip by its root, `optim::clip_factor(std::sqrt(…), max_norm)`: the norm of what one rank
// has is another on each rank, and would part the weights that are equal. A collective. Throws ConfigError where none
// of several ranks' weights is a part, and where those that are none have other gradients on other ranks.
double gradient_square_sum(const std::vector<at::Tensor>& weights, comm::Communicator& comm);
// Clips by that norm, as torch.nn.utils.clip_grad_norm_ does, and returns it. A collective; throws as above.
double clip_grad_norm(const std::vector<at::Tensor>& weights, double max_norm, comm::Communicator& comm);

}  // namespace lockstep::parallel::tensor
