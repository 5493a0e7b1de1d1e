// The command `train RECIPE [options]`: reads its line and writes one that reads back as the same options.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/options/recipe_choice.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {

// The file of the options that a resumed run had; empty: there is none. Throws ConfigError.
using FindResumedConfig = std::function<std::string(const TrainOptions& options)>;

// Not for several threads at once.
class TrainCommand {
 public:
  // `program` is how the user calls it, "lockstep"; the recipes are those that it can train.
  TrainCommand(std::string program, RecipeDescriptions recipes);

  // Reads the words after "train". Returns the text of --help where it is asked for, else nothing. What a resumed run
  // had holds where neither --config nor the line says anything, but for options of one start. `cores`: what --nproc
  // auto stands for. Throws ConfigError: one line that names option, value and what is allowed.
  std::optional<std::string> read(const std::vector<std::string>& args, int cores,
                                  const FindResumedConfig& find_resumed = {});

  // After read(). The front changes them where it chooses a run's folder.
  TrainOptions& options() { return options_; }
  const std::shared_ptr<RecipeDescription>& recipe() const { return recipe_; }
  // All rows: the components' and the recipe's own, bound to options() and recipe().
  const config::OptionSet& rows() const { return rows_; }

  // "train", and the words that read() takes for the same options.
  std::vector<std::string> arguments() const;

 private:
  std::string help(const std::vector<std::string>& args);
  std::vector<config::GivenOption> from_file(const std::string& path) const;

  std::string program_;
  RecipeChoice choice_;
  TrainOptions options_;
  config::OptionSet rows_;
  std::shared_ptr<RecipeDescription> recipe_;
};

}  // namespace lockstep::train
