// What data parallelism does for a network that is in mixed precision (amp::MixedPrecision), or whose optimizer keeps
// masters of 16-bit weights.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Gives all ranks the root's fp32 masters, of which the weights are the rounded copies; not those of a sharded
// optimizer, of which ranks have slices. A collective.
void broadcast_masters(const torch::nn::Module& network, comm::Communicator& comm, int root);

// A number for each run of the process, for amp::FoldedGradients.
uint64_t next_run();

// Throws ConfigError for a network of which `mixed` has no parameter.
void check_given(const torch::nn::Module& network, const amp::MixedPrecision& mixed, int64_t step);

// Throws ConfigError for a network whose losses have another scale. One forgotten argument would leave gradients that
// underflow, or that are divided by a scale which they don't have.
void check_scale(const torch::nn::Module& network, double loss_scale, int64_t step);

// Throws ConfigError for a network whose level casts operations if a step's function has cast nothing: it has computed
// in fp32, as where run() was not given the MixedPrecision. Nothing was cast if no autocast was open and `loss` has no
// cast in its graph. `opened_before`: amp::autocast_scopes_opened() at the function's begin.
void check_autocast(const torch::nn::Module& network, const at::Tensor& loss, uint64_t opened_before);

// Holds back the optimizers that step masters of the network (MasterWeights).
void hold_masters(const torch::nn::Module& network);

}  // namespace lockstep::parallel
