// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016): what a part of a
// network computes in its forward is not kept for its backward, which computes it again. PyTorch has it as
// torch.utils.checkpoint.
//
// PyTorch's runs a backward of its own within backward, which adds to .grad once for every part that uses a parameter.
// Here the parameters that the function reaches are inputs of its graph node, as are its tensors: their gradients take
// the usual way, once a pass, and data parallelism, find_unused_parameters, autograd::grad and second derivatives work
// as without it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace lockstep::nn {

struct CheckpointOptions {
  bool preserve_rng_state = true;  // the recomputation draws the same random numbers (dropout)
  // Tensors that `function` changes in place, which the recomputation must not change again: libtorch's BatchNorms and
  // InstanceNorms have such buffers. This project's BatchNorms, SyncBatchNorm among them, need no mention.
  std::vector<at::Tensor> buffers = {};
};

// Returns function(inputs), with its graph. `function` is called now and again in backward, under the autocast that is
// on now, and gives the same both times; it is kept as long as the graph. The gradients' bits are those of the same
// network without it, but where one call uses a parameter or an input several times: its parts are added to each other
// before they are added to those of other calls. With gradients disabled it is a plain call.
//
// Hooks of parameters and inputs (Tensor::register_hook) run once, as without it.
//
// Throws ConfigError for a tensor with a graph that `function` uses and that is not among the inputs, and for a
// BatchNorm or InstanceNorm of libtorch's in training whose buffers are not in the options.
std::vector<at::Tensor> checkpoint(
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>& function,
    const std::vector<at::Tensor>& inputs, const CheckpointOptions& options = {});
at::Tensor checkpoint(const std::function<at::Tensor(const at::Tensor& input)>& function, const at::Tensor& input,
                      const CheckpointOptions& options = {});

// Whether this thread is within a function that is checkpointed, and whether it is called again, so that a layer must
// not count its use twice.
bool is_checkpointing();
bool is_recomputing();
// Called by a layer within a function that is checkpointed: the recomputation gives `buffer` back the value that it
// finds, as it does with CheckpointOptions::buffers. Elsewhere it does nothing.
void keep_in_recomputation(const at::Tensor& buffer);

}  // namespace lockstep::nn
