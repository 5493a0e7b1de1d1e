// SyncBatchNorm: a BatchNorm whose statistics are those of all lanes of a step, as in Apex and PyTorch.
//
// Each lane's count, means and sums of squared deviations are gathered and combined two by two (Chan, Golub and
// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979) in the order of the
// fold's tree over lanes. Backward adds Σdy and Σdy·x̂ in the same order. So the bits do not depend on the number of
// ranks, lanes may be of different sizes or empty, and the result is that of BatchNorm over the joined batch. Where a
// rank has several lanes, they run by turns (lane_turns.h), and the activations of all of them are alive at once.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/sync_group.h"

namespace lockstep::parallel {

// Makes every BatchNorm in `module`, itself included, a SyncBatchNorm: libtorch's BatchNorm1d, 2d and 3d, and this
// project's BatchNorm2d. They stay the same objects, with their parameters, buffers, names and layouts. `group`: the
// ranks whose lanes are joined, this one among them; empty means all. All ranks call it, each with its own group,
// before DistributedDataParallel is made. Throws ConfigError for a BatchNorm of libtorch's that keeps no running
// statistics, and for a module without a BatchNorm.
void convert_sync_batchnorm(torch::nn::Module& module, comm::Communicator& comm, const std::vector<int>& group = {});

// The same with another exchange than that of ranks. All lanes whose statistics are joined hold the same network.
void join_statistics(torch::nn::Module& module, const std::shared_ptr<nn::StatisticsExchange>& exchange);

// Returns the group that a converted module's BatchNorms share; null for a module that was not converted.
std::shared_ptr<SyncGroup> find_sync_group(const torch::nn::Module& module);

}  // namespace lockstep::parallel
