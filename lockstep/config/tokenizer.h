// The words of a command line sorted into options and what stands between them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option_spec.h"

namespace lockstep::config {

struct GivenOption {
  std::string name;   // "batch-size"
  std::string value;  // "" for an option given without its optional value, "true" for a flag
};

struct Given {
  std::vector<GivenOption> options;  // each at most once, in the order of the shapes
  std::vector<std::string> words;    // what belongs to no option
  bool help = false;                 // --help or -h
};

enum class Rest { kOptions, kProgram };  // kProgram: the first word that is no option begins another program's line

// Throws ConfigError: an unknown option (with the nearest known one), one that is not available in this version, one
// without its value or given twice. An optional value is taken to be left out before a recipe's name.
Given tokenize(std::span<const OptionShape> shapes, const std::vector<std::string>& args, Rest rest = Rest::kOptions);

// An unknown option or key; `spelled` as in "--epoch", compared with the shapes' names.
[[noreturn]] void refuse_unknown(const std::string& spelled, std::span<const OptionShape> shapes);

// "  --epochs N    passes over the data", by group, for --help.
std::string describe(std::span<const OptionShape> shapes);

// The rows of a table as the functions above want them.
template <typename Options>
std::vector<OptionShape> shapes_of(const OptionTable<Options>& table) {
  return {table.begin(), table.end()};
}

}  // namespace lockstep::config
