// What a checkpoint becomes when it is written in another format: `lockstep convert`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

struct ConvertOptions {
  std::string file;            // the checkpoint's name, for messages
  bool weights_alone = false;  // the model's state dict, and nothing beside it
  bool average = false;        // with weights_alone: their average
  std::string strip_prefix;    // the state dict's names that begin with it are taken, without it
  bool from_paddle = false;    // whether names and layouts are Paddle's, and are to be (paddle_names.h)
  bool to_paddle = false;
};

struct Converted {
  Dict value;
  std::vector<std::string> notes = {};  // for people: what was taken, renamed and left out
};

// Tensors are those of `root`. Without options any dict is kept as it is, a model's or not. "__metadata__" of a
// safetensors file (texts about it) stays only where weights_alone is set and it lies beside the weights. Throws
// ConfigError, DataError as find_state() and without_prefix() do.
Converted convert(const Value& root, const ConvertOptions& options);

// The names of files, for messages.
struct PaddleFiles {
  std::string params, optimizer;
};

// A .pdparams and a .pdopt of one network as {"model": state dict, "optimizer": Optimizer.state_dict()} in PyTorch's
// names and layouts. The weights are the .pdopt's fp32 masters where it has them. Throws as optimizer_from_paddle().
Converted from_paddle_files(const Value& params, const Value& optimizer, const PaddleFiles& files,
                            std::pair<double, double> betas);

// The optimizer's state of a checkpoint as a .pdopt of the network whose .pdparams is `names`. Throws DataError where
// the checkpoint has none, and as optimizer_to_paddle().
Converted to_paddle_optimizer(const Value& root, const std::string& file, const Value& names,
                              const std::string& file_of_names);

}  // namespace lockstep::checkpoint
