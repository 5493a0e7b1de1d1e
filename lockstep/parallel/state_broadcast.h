// One rank's parameters and buffers for all.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Everyone gets the root's values; by way of the CPU where the communicator does not take the tensor's device.
// Collectives.
void broadcast_tensor(const at::Tensor& tensor, comm::Communicator& comm, int root);
void broadcast_state(const torch::nn::Module& module, comm::Communicator& comm, int root);

}  // namespace lockstep::parallel
