// The options of a look at a data set.
#pragma once

#include <optional>
#include <string>

#include "lockstep/config/option_set.h"
#include "lockstep/datasets/options/image_options.h"

namespace lockstep::datasets {

struct SurveyOptions {
  std::string data;
  bool quick = false;       // headers alone; nothing is decoded
  bool verify = false;      // packed data: compare checksums and record counts, open all parts
  std::string sheet;        // where the contact sheet is written; empty: nowhere
  std::optional<int> size;  // pixels a side of what training sees; unset: the recipe's
  ImageOptions images;
  int64_t seed = 1;            // of what is drawn for the sheet, and of the validation part
  std::optional<int> workers;  // threads; unset: one for each core

  void declare(config::OptionSet& options);
  // Throws ConfigError for options that don't go together.
  void check() const;
};

}  // namespace lockstep::datasets
