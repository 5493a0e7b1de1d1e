// The command `eval RECIPE --load FILE [options]`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/options/precision_options.h"
#include "lockstep/parallel/options/parallel_options.h"
#include "lockstep/train/options/recipe_choice.h"

namespace lockstep::train {

struct EvalOptions {
  std::string recipe;  // its name
  std::string load;    // never empty
  std::string data;    // empty: made on the spot
  std::optional<int> batch_size;
  parallel::ProcessOptions processes;
  amp::AmpLevel amp = amp::AmpLevel::kO0;
  bool json = false;

  void declare(config::OptionSet& options);
};

// Not for several threads at once.
class EvalCommand {
 public:
  EvalCommand(std::string program, RecipeDescriptions recipes);

  // As TrainCommand::read() and arguments().
  std::optional<std::string> read(const std::vector<std::string>& args);
  std::vector<std::string> arguments() const;

  const EvalOptions& options() const { return options_; }
  const std::shared_ptr<RecipeDescription>& recipe() const { return recipe_; }

  // Sets those of the recipe's own options that the line did not set to the values in a run's record. Throws
  // ConfigError.
  void take_recorded(const config::Record& record);

 private:
  std::string program_;
  RecipeChoice choice_;
  EvalOptions options_;
  config::OptionSet rows_, own_rows_;  // the recipe's own stand apart
  std::shared_ptr<RecipeDescription> recipe_;
};

}  // namespace lockstep::train
