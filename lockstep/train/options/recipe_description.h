// The description of a recipe for the command line: its name, presets and own options. Links no libtorch.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/option_set.h"
#include "lockstep/config/spellings.h"

namespace lockstep::train {

// Other people's settings under a name. Whatever is said about a run wins over them.
struct Preset {
  std::string name;
  std::vector<config::GivenOption> options;
};

class RecipeDescription {
 public:
  virtual ~RecipeDescription() = default;
  virtual std::string name() const = 0;
  virtual std::vector<Preset> presets() const { return {}; }
  // The preset that a run has where nothing names one: what these data ask for, unless one of the options that were
  // given speaks against it. "": the recipe's own settings.
  virtual std::string usual_preset(const std::string& /*data*/,
                                   const std::vector<config::GivenOption>& /*given*/) const {
    return "";
  }
  // Other people's names for options.
  virtual std::vector<config::Spelling> spellings() const { return {}; }
  // Declares the recipe's own options, bound to fields of this object. They are read before any other function is
  // called.
  virtual void declare(config::OptionSet& /*options*/) {}
  // Returns the lanes of a run that says neither --nproc nor --lanes. Its bits depend on them, so that they are no
  // number of the machine's.
  virtual int lanes() const { return 4; }
  // Sets the options that were left out to what they stand for with these data (a path, or "" for data made on the
  // spot). Called once all options are read, before check(). Throws ConfigError for options that go with other data.
  virtual void resolve(const std::string& /*data*/) {}
  // Throws ConfigError for values that a check of each option alone can't refuse.
  virtual void check() const {}
};

}  // namespace lockstep::train
