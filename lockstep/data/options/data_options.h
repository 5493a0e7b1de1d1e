// The options of a run's data.
#pragma once

#include <optional>
#include <string>

#include "lockstep/config/option_set.h"

namespace lockstep::data {

struct DataOptions {
  std::string path;                  // of the data set; empty: data made on the spot
  std::optional<double> validation;  // percent of the training data held out
  std::string hold_out;              // files of samples that are held out instead (subset.h); empty: that share
  std::optional<int> workers;        // loader threads a process; unset: for data that decodes its share of the cores
  int64_t skip_bad = 0;              // samples that can't be read, and are passed over; 0: the first one ends the run
  bool drop_last = false;            // an epoch's last, smaller batch is left out

  void declare(config::OptionSet& options);
  // Throws ConfigError for options that do not go together.
  void check() const;
};

}  // namespace lockstep::data
