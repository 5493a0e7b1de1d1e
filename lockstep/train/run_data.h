// The data of a run: opened by its recipe in one way for training, for a resume and for an evaluation, with all parts,
// and the same on all ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockstep/data/findings.h"
#include "lockstep/data/subset.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/data_facts.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/train/recipe.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// Data as a recipe opens them, of which nothing is held out yet.
struct OpenedData {
  data::Splits splits;
  DataFacts facts;
  DataFiles files;
};

// How samples come: DataRequest's of these names.
struct SampleForm {
  bool as_bytes = false, encoded = false, passes_over_bad = false;
};

// Opens the data at `path`; "": those made on the spot by the seed. `findings`: rank 0's of a former opening, and then
// of this. A collective. Throws DataError, on all ranks, that names a rank whose data are
// not rank 0's.
OpenedData open_data(const Recipe& recipe, const std::string& path, uint64_t seed, bool channels_last, World& world,
                     std::shared_ptr<data::Findings> findings = nullptr, SampleForm form = {});

// What data.scan in the folder of a run keeps of a look at its data; nothing if there is none. "": no run.
std::shared_ptr<data::Findings> read_findings(const std::string& run_folder);

// The threads that load data: so many as asked for, and at least one where a GPU trains, so that batches are made while
// it computes.
int loading_threads(DeviceKind device, int workers);

struct RunData {
  data::Splits splits;            // none is null but the validation part
  data::HoldOutRequest held_out;  // what of the training data became the validation part
  bool held_usual = true;         // nobody had to ask for that
  DataFacts facts;                // of all parts, whatever is held out
  DataFiles files;
  std::shared_ptr<data::Findings> findings;  // rank 0's, for data.scan
  int workers = 0;                           // threads that load it
};

// Opens a run's data. A run that resumes holds out what its checkpoint says, if the options say nothing. A collective.
// Throws as open_data(), and ConfigError for a resume whose files are others: it names the first by data.list; and for
// --normalize device with data that come as numbers, or a batch transform that computes with them; and for --decode
// device with data, a recipe or a batch transform that it does not go with.
RunData open_run_data(const Recipe& recipe, const TrainOptions& options, World& world,
                      const ResumedCheckpoint* resumed = nullptr);

}  // namespace lockstep::train
