// Weights alone from a checkpoint of any format: to begin with, or best.pt's at the end of a loop of one's own.
//
//   loop::load_weights(*net, "resnet18.safetensors");
//   loop::load_weights(*net, "runs/spiral/checkpoints/best.pt", {.mixed = &mixed});
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/checkpoint/state_dict.h"

namespace lockstep::loop {

struct LoadWeightsOptions {
  amp::MixedPrecision* mixed = nullptr;  // the network's, if it has fp32 masters by now
  bool average = false;                  // the average of the weights, which the file must have
  bool strict = true;                    // a name that only one side has is an error
  bool partly = false;                   // what fits is loaded, of another head for example; the report names the rest
  std::string strip_prefix = {};         // the names that begin with it are taken, without it
  bool ignore_unknown = false;           // objects of unknown classes in the file are left out; they are never called
};

// Loads the weights, and the buffers, of the model that a file holds (docs/checkpoints.md), on every rank alike. Before
// or after MixedPrecision is made the network ends in the same state: fp32 masters take the file's exact values, of
// which 16-bit weights are the rounded copies. A collective where `mixed` has a sharded optimizer. Throws ConfigError
// for another model's weights, and where the network has masters and `mixed` is not given; DataError, IoError as
// open_checkpoint().
checkpoint::LoadReport load_weights(torch::nn::Module& network, const std::string& file,
                                    const LoadWeightsOptions& options = {});

}  // namespace lockstep::loop
