// A command of lockstep: reads its options and words from a command line, and writes them as one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"
#include "lockstep/config/spellings.h"
#include "lockstep/config/tokenizer.h"

namespace lockstep::apps {

// `Options` has
//   static constexpr const char* kName;        // "inspect"
//   static constexpr config::Rest kRest;       // what follows the first word that is no option
//   static std::string help(rows);             // the text of --help, from the description of its rows
//   void declare(config::OptionSet& options);
//   void take(const config::Given& line);      // its words; throws ConfigError
template <typename Options>
class Command {
 public:
  Command() { options_.declare(rows_); }

  // Reads the words after the command's name. Returns the text of --help where it is asked for, else nothing. Throws
  // ConfigError.
  std::optional<std::string> read(const std::vector<std::string>& args) {
    std::vector<std::string> words = args;
    if constexpr (requires { Options::spellings(); })
      words = config::respell(args, Options::spellings(), rows_.shapes());
    const config::Given line = config::tokenize(rows_.shapes(), words, Options::kRest);
    if (line.help) return Options::help(config::describe(rows_.shapes()));
    rows_.apply_as_given(line.options);
    options_.take(line);
    return std::nullopt;
  }

  const Options& options() const { return options_; }
  const config::OptionSet& rows() const { return rows_; }

  // Returns the command's name and the words that read() reads as the same options.
  std::vector<std::string> arguments() const {
    std::vector<std::string> words = rows_.arguments();
    words.insert(words.begin(), Options::kName);
    return words;
  }

 private:
  Options options_;
  config::OptionSet rows_;
};

}  // namespace lockstep::apps
