// The origin of a run's bits, as its checkpoints record it: the options and data that the bits depend on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/config/option_set.h"
#include "lockstep/data/subset.h"
#include "lockstep/train/data_facts.h"
#include "lockstep/train/options/recipe_description.h"
#include "lockstep/train/options/train_options.h"

namespace lockstep::train {

struct Origin {
  config::Record options;             // each that has an Effect, with the value that the run took
  std::vector<int64_t> sample_shape;  // {3, 64, 64}
  int64_t train_samples = 0;
  DataFacts data = {};
  std::string versions = {};  // versions_of_build() then; "": not recorded

  bool operator==(const Origin&) const = default;
  // Returns the recorded value of an option. Throws DataError if it is not recorded.
  const std::string& option(const std::string& name) const;
  // Returns the recorded value of an option that is a whole number.
  int64_t number(const std::string& name) const;
  // Returns the network as options name it: "imagenet --arch resnet18".
  std::string network() const;
  // Returns the number of the run's first epoch, counted from 0.
  int64_t first_epoch() const;
  // Returns the percent of the training samples that the run held out, 0 if none, and the files if it has named them.
  data::HoldOutRequest held_out() const;
};

// Returns "lockstep 0.1.0, libtorch 2.11.0": other versions may round otherwise.
std::string versions_of_build();

// Returns "3×64×64".
std::string shape_text(const std::vector<int64_t>& shape);

// Throws ConfigError for a resume from the checkpoint `file` on data that are not its own; `difference` says how.
[[noreturn]] void throw_other_data(const std::string& file, const std::string& difference);

// The rows of a run's options, bound to a copy of them, and of its recipe's own.
class RunRows {
 public:
  RunRows(const TrainOptions& options, RecipeDescription& recipe);

  config::Record record() const;
  // Throws ConfigError, on every rank, where ranks have other values of an option that the run's bits depend on, or the
  // collectives that it makes: nodes have lines, and files of options, of their own. A collective.
  void check_ranks(comm::Communicator& comm) const;
  // Returns the text of the run's own file, which repeats the run if the options are resolved.
  std::string to_toml() const;

  // Throws ConfigError that names the first option of kIdentity, or fact of the data, in which the run differs from its
  // checkpoint. An option that the checkpoint does not record had its default; a missing option of the recipe's own is
  // refused.
  void check(const Origin& run, const Origin& checkpoint, const std::string& file) const;

  // Returns the changes of a resumed run: "--lr 0.1 -> 0.05" for each option of kTrajectory that differs, and another
  // version's name. An option that the checkpoint does not record had its default.
  std::vector<std::string> changes(const Origin& run, const Origin& checkpoint) const;

  // Returns all of the recipe's own options: "--arch resnet18 --size 64".
  std::string recipe_text() const;
  // Returns the options that the run's bits depend on and that differ from their defaults and from those of the recipe,
  // which `defaults` records: "--lr 0.05 --clip 1".
  std::string chosen_text(const config::Record& defaults) const;

 private:
  TrainOptions options_;
  config::OptionSet rows_, own_;
};

}  // namespace lockstep::train
