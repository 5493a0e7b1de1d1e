// Whether libtorch's layers compute with the parameters that they have registered.
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace lockstep::parallel {

// The name of a parameter that a layer of libtorch's has registered and doesn't compute with, for its member of the
// same name was given another tensor (head->weight = embedding->weight); "" if there is none. Such a tie is lost in a
// copy, whose layers compute with what they have registered.
std::string unregistered_member(const torch::nn::Module& network);

}  // namespace lockstep::parallel
