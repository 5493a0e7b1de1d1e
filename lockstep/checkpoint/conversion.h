// What a checkpoint becomes when it is written in another format: `lockstep convert`.
#pragma once

#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

struct ConvertOptions {
  std::string file;            // the checkpoint's name, for messages
  bool weights_alone = false;  // the model's state dict, and nothing beside it
  std::string strip_prefix;    // dropped from the front of the state dict's names that begin with it
  bool from_paddle = false;    // whether names and layouts are Paddle's, and are to be (paddle_names.h)
  bool to_paddle = false;
};

struct Converted {
  Dict value;
  std::vector<std::string> notes = {};  // for people: what was taken, renamed and left out
};

// Tensors are those of `root`. "__metadata__" of a safetensors file (texts about it) stays only where weights_alone is
// set and it lies beside the weights. Throws ConfigError, DataError as find_state() and without_prefix() do.
Converted convert(const Value& root, const ConvertOptions& options);

}  // namespace lockstep::checkpoint
