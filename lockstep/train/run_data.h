// The data of a run: opened by its recipe, with all parts, and the same on all ranks.
#pragma once

#include <optional>
#include <string>

#include "lockstep/data/subset.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/train/recipe.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

struct RunData {
  data::Splits splits;             // none is null but the validation part
  std::optional<double> held_out;  // percent of the training data that became the validation part; null: none did
  std::string fingerprint;         // of all training data, whatever is held out
  int workers = 0;                 // threads that load it
};

// What a recipe is asked for; opening is then a collective.
DataRequest request_of(World& world, const std::string& path, uint64_t seed, bool channels_last);

// Opens a run's data. A collective. Throws DataError, on all ranks, that names a rank whose data are not rank 0's.
RunData open_run_data(const Recipe& recipe, const TrainOptions& options, int lanes, World& world);

// Names the file in which `data` is not what data.list in the folder of a run says: "cats/new.jpg was added"; empty if
// there is none, or if the data set has no files that could be told apart.
std::string changed_file(const std::string& run_folder, const data::Dataset& data);

}  // namespace lockstep::train
