// The command `train [RECIPE] [options]`: reads its line and writes one that reads back as the same options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/options/option_file.h"
#include "lockstep/train/options/recipe_choice.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {

// Returns the path of the resumed run's option file, or an empty string if there is none. Of the options, recipe, out
// and resume are set. Throws ConfigError.
using FindResumedConfig = std::function<std::string(const TrainOptions& options)>;

// Used by one thread at a time.
class TrainCommand {
 public:
  // `program` is how the user calls it, "lockstep"; the recipes are those that it can train.
  TrainCommand(std::string program, RecipeDescriptions recipes);

  // Reads the words after "train". Returns the text of --help if the line asks for it, else nothing. An option that
  // neither --config nor the line sets keeps the value that the resumed run had, unless it is an option of one start.
  // The line need not name the recipe if --config or the resumed run does.
  // `machine` says how many ranks what is left open becomes. Throws ConfigError: one line that names the option, the
  // value and the allowed ones.
  // It may be called again, where another run of the same recipe turns out to be the one that goes on: each call reads
  // everything anew.
  std::optional<std::string> read(const std::vector<std::string>& args, const parallel::Machine& machine,
                                  const FindResumedConfig& find_resumed = {});

  // The options, after read(). The front changes them when it chooses a run's folder.
  TrainOptions& options() { return options_; }
  const TrainOptions& options() const { return options_; }
  const std::shared_ptr<RecipeDescription>& recipe() const { return recipe_; }
  // All rows: the components' and the recipe's own, bound to options() and recipe().
  const config::OptionSet& rows() const { return rows_; }

  // Returns "train" and the words that read() reads as the same options.
  std::vector<std::string> arguments() const;

  // Returns the command line that goes on with the run in `folder`, with those options of one start that this line
  // gave.
  std::string resume_command(const std::string& folder) const;

 private:
  std::string help(const std::vector<std::string>& args);
  void apply(const std::string& recipe, OptionFile& resumed, const OptionFile& file,
             const std::vector<config::GivenOption>& line);

  std::string program_;
  RecipeChoice choice_;
  TrainOptions options_;
  config::OptionSet rows_;
  std::shared_ptr<RecipeDescription> recipe_;
};

}  // namespace lockstep::train
