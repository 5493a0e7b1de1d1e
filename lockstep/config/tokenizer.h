// Splits a command line into options and the words between them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::config {

struct Given {
  std::vector<GivenOption> options;  // each at most once, in the order of the shapes
  std::vector<std::string> words;    // the words that belong to no option
  bool help = false;                 // --help or -h
};

enum class Rest {
  kOptions,
  kProgram
};  // kProgram: the first word that is no option, or "--", begins another program's line

// What an option that is given twice is: a mistake, or one whose last value counts, as with Python's argparse.
enum class Repeated { kRefused, kLastCounts };

// Splits a line. A word of `subjects`, such as a recipe's name, is never taken for an option's optional value. Throws
// ConfigError for an unknown option (with the nearest known one), for one without its value, and for one that is
// refused because it is given twice.
Given tokenize(std::span<const OptionShape> shapes, const std::vector<std::string>& args, Rest rest = Rest::kOptions,
               std::span<const std::string> subjects = {}, Repeated repeated = Repeated::kRefused);

// Returns the one word that a command is about. `command` is how the user calls it, "lockstep train"; `what` is its
// name in messages, "RECIPE" or "FILE". Throws ConfigError that names it if there is no word, and one that names the
// second word if there are two.
std::string only_word(const Given& given, const std::string& command, const std::string& what);
// Throws ConfigError if there is a word.
void refuse_words(const Given& given, const std::string& command);

// Returns the lines of --help, by section: "  --epochs N    passes over the data".
std::string describe(std::span<const OptionShape> shapes);

}  // namespace lockstep::config
