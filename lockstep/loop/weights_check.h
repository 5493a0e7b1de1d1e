// What a checkpoint of a loop looks at in the weights that it is to hold.
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace lockstep::loop {

// Of the bits of all parameters on the CPU.
std::string hash_of_weights(const torch::nn::Module& network);

// The name of a parameter on the CPU that has a NaN or an infinity; "" if none has.
std::string find_not_finite(const torch::nn::Module& network);

}  // namespace lockstep::loop
