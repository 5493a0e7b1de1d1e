// The commands `eval RECIPE --load FILE [options]` and `eval RUN_DIR [options]`.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/options/precision_options.h"
#include "lockstep/parallel/options/parallel_options.h"
#include "lockstep/train/options/device_option.h"
#include "lockstep/train/options/option_file.h"
#include "lockstep/train/options/recipe_choice.h"
#include "lockstep/train/options/weights_options.h"

namespace lockstep::train {

enum class EvalSplit { kTrain, kValidation, kTest };
// The last two are what the parts of Paddle's mnist.json.gz are called.
constexpr auto words(EvalSplit) {
  return std::to_array<config::Word<EvalSplit>>({{EvalSplit::kTrain, "train"},
                                                 {EvalSplit::kValidation, "validation"},
                                                 {EvalSplit::kTest, "test"},
                                                 {EvalSplit::kValidation, "valid"},
                                                 {EvalSplit::kTest, "eval"}});
}

struct EvalOptions {
  std::string recipe;  // its name
  WeightsOptions weights;
  std::string data;  // as the line says; empty: the run's own
  // The data that the checkpoint's run was trained on, if the checkpoint lies in a run's folder; "": made on the spot.
  std::optional<std::string> run_data;
  int64_t run_skip_bad = 0;         // what the run passed over at most, if the checkpoint lies in its folder
  std::optional<int64_t> skip_bad;  // samples that can't be read, and are left out
  std::optional<int> batch_size;
  parallel::ProcessOptions processes;
  amp::RecordedPrecisionOptions precision;
  DeviceChoice device;
  std::optional<EvalSplit> split;  // unset: what the run's own test was on
  bool confusion = false;          // counts which classes are taken for which
  int worst = 0;                   // so many samples on which the network does worst are drawn
  std::string out;                 // the picture of them; not empty where `worst` is above 0
  bool json = false;

  // Returns the path of the data to evaluate on; "": made on the spot.
  std::string data_path() const { return data.empty() ? run_data.value_or("") : data; }

  void declare(config::OptionSet& options);
};

// Not for several threads at once.
class EvalCommand {
 public:
  EvalCommand(std::string program, RecipeDescriptions recipes);

  // As TrainCommand::read() and arguments(). Where the checkpoint lies in a run's folder, the run's config.toml gives
  // what the line leaves out: the recipe and the data. Throws ConfigError for data or a checkpoint that are not there,
  // and for a folder without one.
  std::optional<std::string> read(const std::vector<std::string>& args);
  std::vector<std::string> arguments() const;

  const EvalOptions& options() const { return options_; }
  const std::shared_ptr<RecipeDescription>& recipe() const { return recipe_; }

  // Sets those of the recipe's own options that the line did not set to the values in a run's record (empty for weights
  // without one), and what is then left out to what it stands for with these data. Called before the recipe is used.
  // Throws ConfigError.
  void take_recorded(const config::Record& record);

 private:
  std::string program_;
  RecipeChoice choice_;
  EvalOptions options_;
  config::OptionSet rows_, own_rows_;  // the recipe's own stand apart
  std::shared_ptr<RecipeDescription> recipe_;
};

}  // namespace lockstep::train
