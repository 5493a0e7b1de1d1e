// Weights alone from a file of any format into a module: what `--load` takes.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/state_dict.h"

namespace lockstep::checkpoint {

struct LoadModelOptions {
  std::string file;               // its name in errors
  std::string strip_prefix = {};  // dropped from the front of the names that begin with it
  bool average = false;           // the weights' average where the file has one (find_evaluated_state())
  bool paddle = false;            // whether the file is Paddle's (is_paddle_file(), asked when it was opened)
  bool strict = true;             // LoadOptions'
};

struct LoadedModel {
  LoadReport report;  // its prefix is all that was dropped, for people
  Dict state;         // what was loaded, in PyTorch's layouts, by the module's names
};

// Finds the model's state dict in the tree, drops `strip_prefix`, takes Paddle's names and layouts for PyTorch's, and
// loads it; dtypes are converted. Throws as find_model_state(), without_prefix() and load_state_dict() do.
LoadedModel load_model(torch::nn::Module& module, const Value& root, const LoadModelOptions& options);

}  // namespace lockstep::checkpoint
