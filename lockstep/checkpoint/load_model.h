// Weights alone from a file of any format into a module: what `--load` takes.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/state_dict.h"

namespace lockstep::checkpoint {

struct LoadModelOptions {
  std::string file;               // its name in errors
  std::string strip_prefix = {};  // the names that begin with it are taken, without it
  Average average = Average::kOff;
  bool paddle = false;  // whether the file is Paddle's (is_paddle_file(), asked when it was opened)
  bool strict = true;   // LoadOptions'
  bool partly = false;  // LoadOptions'
};

// The weights in a file that the options name.
struct ChosenState {
  Dict state;                         // by the file's names, without the prefix
  std::string name;                   // FoundState's
  std::vector<std::string> others;    // FoundState's
  std::vector<std::string> left_out;  // names without the prefix
};
// Throws as find_state() and without_prefix() do.
ChosenState choose_state(const Value& root, const LoadModelOptions& options);

struct LoadedModel {
  LoadReport report;  // its prefix is all that was dropped, for people
  Dict state;         // what was loaded, in PyTorch's layouts, by the module's names
};

// Takes choose_state()'s weights, Paddle's names and layouts for PyTorch's, and loads them; dtypes are converted.
// Throws as choose_state() and load_state_dict() do.
LoadedModel load_model(torch::nn::Module& module, const Value& root, const LoadModelOptions& options);
LoadedModel load_model(torch::nn::Module& module, ChosenState chosen, const LoadModelOptions& options);

}  // namespace lockstep::checkpoint
