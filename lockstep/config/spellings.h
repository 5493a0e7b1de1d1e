// Other people's names for options, so that their command lines work as they are.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option.h"

namespace lockstep::config {

// `-e 5` for --epochs 5; `--save_every 5`, where that counts epochs, for --save-every 5epochs.
struct Spelling {
  std::string other;   // "-e", "--save_every"
  std::string option;  // "epochs"
  std::string before = {};
  std::string after = {};   // of a whole number
  bool takes_value = true;  // false: `before` is the value
};

// Returns the line with each other name of an option among `shapes` replaced, and with underscores in names of options
// that have dashes. Takes the value as "-e 5", "-e5", "--name 5" or "--name=5". What follows "--" stays.
std::vector<std::string> respell(std::span<const std::string> args, std::span<const Spelling> spellings,
                                 std::span<const OptionShape> shapes);

}  // namespace lockstep::config
