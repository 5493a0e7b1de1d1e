// One option of a component, for the command line, TOML files, help and a run's record.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::config {

// How an option is written. kWord is the word that a command is about, such as the recipe of `train`: a key in files,
// but no option on the line.
enum class OptionForm { kValue, kFlag, kOptionalValue, kWord };

// Whether a run's bits depend on an option.
enum class Effect {
  kNone,        // they do not
  kTrajectory,  // they do; a resumed run may change it, and its header says so
  kIdentity,    // they do, and a resumed run must agree with its checkpoint
};

// The facts of an option that a line's reader and help need.
struct OptionShape {
  std::string name;   // "batch-size": --batch-size, and the key in a TOML file
  std::string value;  // the value's name in help, "N"; empty for flags
  std::string help;
  OptionForm form = OptionForm::kValue;
  std::string section = {};
  bool is_text = false;          // quoted in TOML, even if it looks like a number
  bool one_start = false;        // holds for one start of a run: a resumed run does not take it from the run's own file
  bool in_file = true;           // written to a run's own file
  bool is_rules = false;         // rules (rules.h), in files an array of tables
  bool is_list = false;          // values with commas between them, in files an array too
  std::string in_place_of = {};  // the option that this one stands in for: of the two the later place's counts
  std::string when_off = "false";  // with kOptionalValue: what `false` in a file stands for
};

// An option that is bound to a field of a live object.
struct Option : OptionShape {
  Effect effect = Effect::kNone;
  std::function<void(const std::string&)> set;      // throws ConfigError
  std::function<std::optional<std::string>()> get;  // nothing: not set
  std::function<void()> reset;                      // to the value that the field had when it was declared
  std::optional<std::string> default_value = {};    // that value
  bool given = false;                               // on the command line or in the user's file
  std::optional<std::string> recalled = {};         // the value that a resumed run's own file gave
  std::optional<std::string> none = {};             // a value that says the same as leaving the option out

  // Sets the value that a bare --name stands for.
  Option& bare(std::string bare_value);
  // Sets the value that `name = false` stands for in a file, where it is not "false".
  Option& off(std::string value);
  // A run that says this value is, in its record, one that leaves the option out: "0" of an option that is off then.
  Option& none_at(std::string value);
  // Says that the option is given in place of another one of the set.
  Option& stands_for(std::string other);
  Option& of_list();
  Option& of_one_start();
  Option& not_in_file();
};

// An option's name and its value, as a run's record holds them.
struct RecordedOption {
  std::string name;
  std::string value;  // empty: it was not set
  bool operator==(const RecordedOption&) const = default;
};
using Record = std::vector<RecordedOption>;

}  // namespace lockstep::config
