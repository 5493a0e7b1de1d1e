// A module's parameters and buffers by name, in the order of PyTorch's state_dict(): saved, loaded and hashed.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Lists each module's own parameters, then its own buffers, then its children in the order of registration. The tensors
// are detached and share the module's memory.
NamedTensors named_state(const torch::nn::Module& module);

// named_state() as a dict. It shares the module's memory: write it before the module changes.
Dict state_dict(const torch::nn::Module& module);

struct LoadOptions {
  std::string file = "the checkpoint";  // its name in errors
  bool strict = true;                   // a name that only one side has is an error
  bool convert_dtypes = false;          // copy float16 into float32 and the like, as PyTorch does silently
};

// The names that load_state_dict skipped where `strict` is off.
struct LoadReport {
  std::vector<std::string> missing;     // the model has them, the file does not
  std::vector<std::string> unexpected;  // the file has them, the model does not
};

// Copies a state dict into the module, which keeps its tensors and their devices. Drops the prefix "module."
// (DistributedDataParallel's) if all names of the file and none of the model's begin with it. Compares everything
// before it copies anything, so that an error leaves the module unchanged. Throws ConfigError that names the first
// differences in names, shapes or types, DataError where the dict holds something other than tensors.
LoadReport load_state_dict(torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});
// Throws what load_state_dict would, and copies nothing.
void check_state_dict(const torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});

// Finds the model's state dict in a file that may hold more: under "model", "model_state_dict" or "state_dict", else
// the file's own tensors. Throws DataError that names `file` and says what it holds instead.
Dict find_model_state(const Value& root, const std::string& file);

// Finds the weights that a run evaluates: their average under "ema" where the file has one, else find_model_state().
Dict find_evaluated_state(const Value& root, const std::string& file);

// The SHA-256 over the tensors in the bytewise order of their names: final.json's weights_sha256. Each tensor
// contributes its name, NUL, its dtype ("float32"), NUL, its dimensions joined by commas, NUL, and its contiguous
// little-endian bytes. Names must be unique.
std::string weights_sha256(NamedTensors tensors);
std::string weights_sha256(const torch::nn::Module& module);

}  // namespace lockstep::checkpoint
