// The commands `predict RUN_DIR -i IN [options]` and `predict RECIPE --load FILE -i IN [options]`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/options/precision_options.h"
#include "lockstep/config/words.h"
#include "lockstep/train/options/device_option.h"
#include "lockstep/train/options/recipe_choice.h"
#include "lockstep/train/options/weights_options.h"

namespace lockstep::train {

enum class TableFormat { kText, kCsv, kJson };
constexpr auto words(TableFormat) {
  return std::to_array<config::Word<TableFormat>>(
      {{TableFormat::kText, "text"}, {TableFormat::kCsv, "csv"}, {TableFormat::kJson, "json"}});
}

struct PredictOptions {
  std::string recipe;  // its name
  WeightsOptions weights;
  std::string run_data;  // what the run was trained on, if the checkpoint lies in a run's folder; else empty
  std::string input;     // an image, a folder of images, or "-", standard input; never empty
  std::string output;    // of classes a file, of masks a folder; empty: standard output, or beside the images
  int top = 5;           // classes of each image
  TableFormat format = TableFormat::kText;
  int batch_size = 16;
  int threads = 0;  // 0: all cores
  amp::RecordedPrecisionOptions precision;
  DeviceChoice device;

  void declare(config::OptionSet& options);
};

// Not for several threads at once.
class PredictCommand {
 public:
  PredictCommand(std::string program, RecipeDescriptions recipes);

  // As EvalCommand's.
  std::optional<std::string> read(const std::vector<std::string>& args);
  std::vector<std::string> arguments() const;

  const PredictOptions& options() const { return options_; }
  const std::shared_ptr<RecipeDescription>& recipe() const { return recipe_; }

  // Whether images are turned as their EXIF orientation says.
  bool turns_images() const;

  // As EvalCommand's; `data` is what the run was trained on, "" for data made on the spot.
  void take_recorded(const config::Record& record, const std::string& data);

 private:
  std::string program_;
  RecipeChoice choice_;
  PredictOptions options_;
  config::OptionSet rows_, own_rows_;  // the recipe's own stand apart
  std::shared_ptr<RecipeDescription> recipe_;
};

}  // namespace lockstep::train
