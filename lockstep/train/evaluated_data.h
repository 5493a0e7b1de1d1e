// The samples that `eval` judges a checkpoint by. Those are its run's own, or the user is told that they are not: no
// score is of samples that were trained on, or of classes that the network doesn't know, in silence.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/train/origin.h"
#include "lockstep/train/recipe.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

struct EvaluationRequest {
  std::string path;                          // of the data; empty: made on the spot, by the run's seed
  bool named = false;                        // by the user, and not by the run's config.toml
  std::optional<std::string> run_data = {};  // the path that the run was trained on, if it is known
  std::string run_folder = {};               // of data.list and data.scan; empty: none
  bool channels_last = false;
  bool passes_over_bad = false;   // samples that can't be read are left out
  std::optional<Part> part = {};  // that is wanted; unset: what the run's own test was on
};

struct EvaluatedData {
  std::shared_ptr<const data::Dataset> samples;
  std::vector<std::string> warnings = {};  // for people, alike on all ranks
  bool own = false;                        // those that the run's own test was on
  Part part = Part::kTest;                 // that the samples are of: what was held out is a validation part
};

// Opens the data and picks the samples:
//   of the run's own data, as their fingerprints tell, wherever they lie: those that its own test was on;
//   of data that have changed where the run left them: none, which throws DataError that names the first changed file,
//   unless the user has named them;
//   the part that is asked for, where one is: of the run's own data as the run had it;
//   of any others, and for weights without a record: the test part, else the validation part, else all samples. A
//   warning says that they are others.
// Classes are then those of the same name in the run (data/relabelled.h). A collective. Throws as open_data(), and
// DataError that names a class which the run does not have.
EvaluatedData open_evaluated_data(const Recipe& recipe, const EvaluationRequest& asked,
                                  const std::optional<Origin>& origin, World& world);

}  // namespace lockstep::train
