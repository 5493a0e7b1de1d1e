// The check, once at the start, that all ranks hold the same model: names, shapes, dtypes and options.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Returns one line for each parameter and buffer, and one for each option.
std::vector<std::string> describe_model(const torch::nn::Module& module, const std::vector<std::string>& options);

// Returns the first difference between the ranks' descriptions, "rank 2 has … where rank 0 has …", or "" if there is
// none. A pure function.
std::string first_difference(const std::vector<std::vector<std::string>>& by_rank);

// Compares these lines on all ranks. Throws ConfigError, "`what`: " and the first difference, on every rank. A
// collective.
void check_same_lines(const std::string& what, const std::vector<std::string>& lines, comm::Communicator& comm);

// Compares the model and the options on all ranks. Throws ConfigError with the first difference, on every rank. A
// collective.
void check_same_model(const torch::nn::Module& module, const std::vector<std::string>& options,
                      comm::Communicator& comm);

}  // namespace lockstep::parallel
