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

// A state dict's tensors by the module's names: without the prefix of wrappers (name_prefix.h) and AveragedModel's
// "n_averaged". Throws DataError where the dict holds something other than tensors.
NamedTensors named_for(const torch::nn::Module& module, const Dict& state, const std::string& file);

struct LoadOptions {
  std::string file = "the checkpoint";  // its name in errors
  bool strict = true;                   // a name that only one side has is an error
  bool partly = false;                  // what fits is loaded, of another head for example; the report names the rest
  bool convert_dtypes = false;          // copy float16 into float32 and the like, as PyTorch does silently
};

struct LoadReport {
  std::vector<std::string> loaded;  // the model's names of what was copied
  // The names that load_state_dict skipped where `strict` is off.
  std::vector<std::string> missing;     // the model has them, the file does not
  std::vector<std::string> unexpected;  // the file has them, the model does not
  // Where only a part was asked for, what does not fit: "fc.bias: the file has [10], the model [5]".
  std::vector<std::string> unfit;
  // BatchNorm's num_batches_tracked, which files of PyTorch before 0.4.1 lack. The model keeps its own, as in PyTorch.
  std::vector<std::string> uncounted;
  std::string prefix;  // what was dropped from the front of the file's names; usually empty

  // The three below are load_model()'s.
  std::string name;                   // FoundState's: under which the file has the weights
  std::vector<std::string> others;    // FoundState's: what else it has
  std::vector<std::string> left_out;  // names that do not begin with the prefix that was asked for

  // Tells what was taken where there was a choice, for people: "ema, not model; the names without module.". Else empty.
  std::string text() const;
};

// Copies a state dict into the module, which keeps its tensors and their devices. Elements that are still in a file are
// read straight into the module's memory (formats/stored_tensor.h). Drops the prefix of wrappers (name_prefix.h) if the
// names fit only without it; AveragedModel's "n_averaged" then goes, too. Compares everything before it copies
// anything, so that a difference leaves the module unchanged. Throws ConfigError that counts the differences in names,
// shapes or types and names the first ten, DataError where the dict holds something other than tensors.
LoadReport load_state_dict(torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});
// Throws what load_state_dict would, and copies nothing.
void check_state_dict(const torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});

// The SHA-256 over the tensors in the bytewise order of their names: final.json's weights_sha256. Each tensor
// contributes its name, NUL, its dtype ("float32"), NUL, its dimensions joined by commas, NUL, and its contiguous
// little-endian bytes. Names must be unique.
std::string weights_sha256(NamedTensors tensors);
std::string weights_sha256(const torch::nn::Module& module);

}  // namespace lockstep::checkpoint
