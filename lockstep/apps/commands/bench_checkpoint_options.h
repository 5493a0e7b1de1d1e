// The options of `bench checkpoint`.
#pragma once

#include <string>

#include "lockstep/config/option_set.h"

namespace lockstep::apps {

struct BenchCheckpointOptions {
  int megabytes = 372;      // of the file: a third of it the model's weights, the rest AdamW's state
  bool weights = false;     // the file has the model's weights alone
  std::string folder = "";  // where it is written; empty: the system's folder for temporary files
  bool cold = false;        // the file is read from the disk, not from the system's memory
  int rounds = 3;

  void declare(config::OptionSet& options) {
    using enum config::Effect;
    options.number("megabytes", "N", "of the file (10^6 bytes)", &megabytes, 13, 1 << 16, kNone);
    options.toggle("weights", "the model's weights alone, without its AdamW", &weights, kNone);
    options.text("folder", "DIR", "where it is written (left out: the system's temporary folder)", &folder, kNone);
    options.toggle("cold", "read from the disk, not from what the system still has in memory", &cold, kNone);
    options.number("rounds", "N", "of writing and loading, of which the medians count", &rounds, 1, 1000, kNone);
  }
};

}  // namespace lockstep::apps
