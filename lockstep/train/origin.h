// What a run's bits depend on, as its checkpoints record it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/config/option_set.h"
#include "lockstep/train/options/recipe_description.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {

struct Origin {
  config::Record options;             // each that has an Effect, with the value that the run took
  std::vector<int64_t> sample_shape;  // {3, 64, 64}
  int64_t train_samples = 0;

  bool operator==(const Origin&) const = default;
  // The value of an option, which is recorded. Throws DataError if it is not.
  const std::string& option(const std::string& name) const;
  // Of one that is a whole number.
  int64_t number(const std::string& name) const;
};

// The rows of a run's options, bound to a copy of them, and of its recipe's own.
class RunRows {
 public:
  RunRows(const TrainOptions& options, RecipeDescription& recipe);

  config::Record record() const;
  // The run's own file: all that repeats it.
  std::string to_toml() const;

  // Throws ConfigError that names the first option of kIdentity, or fact of the data, in which the run differs from its
  // checkpoint. An option that the checkpoint does not know had its default; one of the recipe's own is refused.
  void check(const Origin& run, const Origin& checkpoint, const std::string& file) const;

  // What a resumed run changes: "--lr 0.1 -> 0.05" for each option of kTrajectory that differs.
  std::vector<std::string> changes(const Origin& run, const Origin& checkpoint) const;

  // "--arch resnet18 --size 64": all of the recipe's own.
  std::string recipe_text() const;
  // "--lr 0.05 --clip 1": what was chosen otherwise than by default and bears on the run's bits.
  std::string chosen_text() const;

 private:
  TrainOptions options_;
  config::OptionSet rows_, own_;
};

}  // namespace lockstep::train
