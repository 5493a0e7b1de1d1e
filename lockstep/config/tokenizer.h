// The words of a command line sorted into options and what stands between them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::config {

struct Given {
  std::vector<GivenOption> options;  // each at most once, in the order of the shapes
  std::vector<std::string> words;    // what belongs to no option
  bool help = false;                 // --help or -h
};

enum class Rest { kOptions, kProgram };  // kProgram: the first word that is no option begins another program's line

// Throws ConfigError: an unknown option (with the nearest known one), one without its value or given twice. An optional
// value is taken to be left out before one of `subjects`, such as a recipe's name.
Given tokenize(std::span<const OptionShape> shapes, const std::vector<std::string>& args, Rest rest = Rest::kOptions,
               std::span<const std::string> subjects = {});

// The one word that a command is about: "RECIPE", "FILE". Throws ConfigError that names it where there is none, and the
// second where there are two.
std::string only_word(const Given& given, const std::string& command, const std::string& what);
// Throws ConfigError where there is a word.
void refuse_words(const Given& given, const std::string& command);

// "  --epochs N    passes over the data", by section, for --help.
std::string describe(std::span<const OptionShape> shapes);

}  // namespace lockstep::config
