// A module's parameters and buffers by name, as PyTorch's state_dict() orders them, into a checkpoint and out of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Every module's own parameters, then its own buffers, then its children in the order of registration. The tensors are
// detached but share the module's memory.
NamedTensors named_state(const torch::nn::Module& module);

// The same as a dict. Write it before the module changes.
Dict state_dict(const torch::nn::Module& module);

struct LoadOptions {
  std::string file = "the checkpoint";  // for messages
  bool strict = true;                   // names that only one side has are an error
  bool convert_dtypes = false;          // copy float16 into float32 and the like, as PyTorch does silently
};

// What did not take part when `strict` is off.
struct LoadReport {
  std::vector<std::string> missing;     // the model has them, the file does not
  std::vector<std::string> unexpected;  // the other way round
};

// Copies a state dict into the module, which keeps its tensors and their devices. A "module." that all names of the
// file and none of the model's begin with (DistributedDataParallel's) is dropped. Everything is compared before
// anything is copied: ConfigError that names the first differences in names, shapes or types, DataError where the dict
// holds something else than tensors; the module is then unchanged.
LoadReport load_state_dict(torch::nn::Module& module, const Dict& state, const LoadOptions& options = {});

// The model's state dict in a file that may hold more: under "model", "model_state_dict" or "state_dict", or the file's
// own tensors. Throws DataError that names `file` and says what it holds instead.
Dict find_model_state(const Value& root, const std::string& file);

// The same of what a run has evaluated: under "ema", where it kept an average of the weights.
Dict find_evaluated_state(const Value& root, const std::string& file);

// SHA-256 over the tensors, names sorted bytewise, for each: name, NUL, dtype ("float32"), NUL, dimensions joined by
// commas, NUL, contiguous little-endian bytes. final.json's weights_sha256. Names must be unique.
std::string weights_sha256(NamedTensors tensors);
std::string weights_sha256(const torch::nn::Module& module);

}  // namespace lockstep::checkpoint
