// The commands `export RUN_DIR OUT [options]` and `export RECIPE --load FILE OUT [options]`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/config/words.h"
#include "lockstep/train/options/recipe_choice.h"
#include "lockstep/train/options/weights_options.h"

namespace lockstep::train {

enum class ExportTo { kOnnx, kTorchScript };
constexpr auto words(ExportTo) {
  return std::to_array<config::Word<ExportTo>>({{ExportTo::kOnnx, "onnx"}, {ExportTo::kTorchScript, "torchscript"}});
}

struct ExportCommandOptions {
  std::string recipe;  // its name
  std::string out;     // the file to write; never empty
  WeightsOptions weights;
  std::string run_data;            // what the run was trained on, if the checkpoint lies in a run's folder; else empty
  std::optional<ExportTo> format;  // unset: as the file's name says
  std::optional<int> batch;        // images a batch; unset: any number
  bool dynamic_size = false;
  bool fold_batch_norm = false;

  void declare(config::OptionSet& options);
};

// Not for several threads at once.
class ExportCommand {
 public:
  ExportCommand(std::string program, RecipeDescriptions recipes);

  // As EvalCommand's.
  std::optional<std::string> read(const std::vector<std::string>& args);
  std::vector<std::string> arguments() const;

  const ExportCommandOptions& options() const { return options_; }
  const std::shared_ptr<RecipeDescription>& recipe() const { return recipe_; }
  // The pixels a side of images, of a recipe that has --size; whether the line says them, and not the recipe.
  std::optional<int64_t> image_size() const;
  bool gives_size() const;

  // As PredictCommand's.
  void take_recorded(const config::Record& record, const std::string& data);

 private:
  std::string program_;
  RecipeChoice choice_;
  ExportCommandOptions options_;
  config::OptionSet rows_, own_rows_;  // the recipe's own stand apart
  std::shared_ptr<RecipeDescription> recipe_;
};

}  // namespace lockstep::train
