// What the lines of `eval` and `predict` are about: a checkpoint, or the folder of a run, and the recipe that it is of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/train/options/option_file.h"
#include "lockstep/train/options/recipe_choice.h"

namespace lockstep::train {

class CheckpointSubject {
 public:
  // `command` is "eval". `choice` outlives this.
  CheckpointSubject(std::string program, std::string command, const RecipeChoice& choice);

  struct Found {
    std::string load;    // the file, or the folder of a run
    std::string recipe;  // its name
    OptionFile run;      // the config.toml of the run that the checkpoint lies in; without a path where there is none
    std::shared_ptr<RecipeDescription> description;
  };
  // Takes the line's word, a recipe or a path, and --load's value (may be empty), and applies the line's options to the
  // recipe's own. `rows` are the command's. Throws ConfigError for a checkpoint that is not named, or not there, for a
  // recipe that is not known, and for options of other recipes.
  Found find(const config::Given& line, const std::string& load, const config::OptionSet& rows,
             config::OptionSet& own_rows) const;

 private:
  bool is_recipe(const std::string& word) const;
  OptionFile file_of_run(const std::string& checkpoint) const;

  std::string program_, command_;
  const RecipeChoice& choice_;
};

// Sets those of a recipe's own options that the line did not set to the values in a run's record.
void take_record(const config::Record& record, config::OptionSet& own_rows);

}  // namespace lockstep::train
