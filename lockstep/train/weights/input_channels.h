// Weights of a network that takes images of other channels than the data's.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/data/dataset.h"

namespace lockstep::train {

// Throws DataError where the weights in `file` would fit the network's first convolution, made for this data, but for
// its input channels: the error names a picture and both numbers of channels. Returns where it can't tell.
void check_input_channels(const torch::nn::Module& network, const checkpoint::Dict& weights, const std::string& file,
                          const data::Dataset& data);

}  // namespace lockstep::train
