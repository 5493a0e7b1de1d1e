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

struct LoadReport {
  // The names that load_state_dict skipped where `strict` is off.
  std::vector<std::string> missing;     // the model has them, the file does not
  std::vector<std::string> unexpected;  // the file has them, the model does not
  std::string prefix;                   // what was dropped from the front of the file's names; usually empty
};

// Copies a state dict into the module, which keeps its tensors and their devices. Elements that are still in a file are
// read straight into the module's memory (formats/stored_tensor.h). Drops the prefix of wrappers (name_prefix.h) if the
// names fit only without it; AveragedModel's "n_averaged" then goes, too. Compares everything before it copies
// anything, so that a difference leaves the module unchanged. Throws ConfigError that counts the differences in names,
// shapes or types and names the first ten, DataError where the dict holds something other than tensors.
LoadReport load_state_dict(torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});
// Throws what load_state_dict would, and copies nothing.
void check_state_dict(const torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});

// Finds the model's state dict in a file that may hold more: the tensors under "model", "model_state_dict",
// "state_dict" (Lightning's, timm's) or another name that is usual, else the file's own. `name` is that name; empty for
// the file's own. Other values beside the tensors, such as milesial's "mask_values", are left out of the file's own
// alone. Throws DataError that names `file` and says what it holds instead.
struct FoundState {
  Dict state;
  std::string name;
};
FoundState find_state(const Value& root, const std::string& file);
Dict find_model_state(const Value& root, const std::string& file);

// Finds the weights that a run evaluates: their average where the file has one, under "ema", timm's "state_dict_ema" or
// torchvision's "model_ema"; else find_model_state().
Dict find_evaluated_state(const Value& root, const std::string& file);

// The SHA-256 over the tensors in the bytewise order of their names: final.json's weights_sha256. Each tensor
// contributes its name, NUL, its dtype ("float32"), NUL, its dimensions joined by commas, NUL, and its contiguous
// little-endian bytes. Names must be unique.
std::string weights_sha256(NamedTensors tensors);
std::string weights_sha256(const torch::nn::Module& module);

}  // namespace lockstep::checkpoint
