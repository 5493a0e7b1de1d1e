// Broadcasts of one rank's parameters and buffers.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Gives every rank the root's values, in place. They go through the CPU if the communicator does not take the tensor's
// device. Collectives.
void broadcast_tensor(const at::Tensor& tensor, comm::Communicator& comm, int root);
// The same for all parameters and buffers of a module.
void broadcast_state(const torch::nn::Module& module, comm::Communicator& comm, int root);

}  // namespace lockstep::parallel
