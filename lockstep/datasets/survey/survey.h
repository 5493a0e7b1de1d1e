// A look at a data set before anyone trains on it: what is there, and all that is wrong with it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/options/survey_options.h"
#include "lockstep/datasets/stored_data.h"

namespace lockstep::datasets {

// Of the numbers of all samples.
struct Spread {
  int least = 0, median = 0, most = 0;
};

struct PartSurvey {
  std::string name;  // "train"; "" of data without parts
  std::string text;  // "250 JPEGs of 250 classes in photos"
  int64_t samples = 0;
  uint64_t bytes = 0;  // of images and masks as they are stored
  std::vector<std::string> class_names;
  std::vector<int64_t> class_counts;         // of each class
  Spread width, height;                      // pixels of upright images
  std::map<std::string, int64_t> formats;    // "JPEG" -> 250; damaged ones by their first bytes, "unknown" by none
  std::map<std::string, int64_t> colours;    // "colour", "grey", "16-bit grey", "colour with alpha", "palette", "CMYK"
  int64_t turned = 0;                        // by their EXIF orientation
  std::map<uint32_t, uint64_t> mask_pixels;  // of each value
  std::vector<std::string> damaged;          // a line for each sample that can't be opened or decoded
  std::vector<int64_t> sound;                // the numbers of the others
  int64_t decoded = 0, decode_ns = 0;        // samples, and the time that they took of a thread

  std::vector<uint32_t> mask_values() const;  // ascending
};

struct Survey {
  std::string path;
  StoredData stored;                    // no parts where nothing could be opened
  std::vector<PartSurvey> parts;        // as stored.parts
  std::string train, validation, test;  // what a run would say of its parts; empty where it would not start
  std::vector<std::string> problems;    // all that keeps a run from starting or ends it; a line each
  std::string verified;                 // what --verify compared

  bool trainable() const { return problems.empty(); }
  bool has_masks() const { return stored.kind == Packed::kMasks; }
};

struct SurveyCallbacks {
  std::function<void(int64_t done, int64_t samples)> on_progress = [](int64_t, int64_t) {};  // after each sample
  std::function<bool()> stops = [] { return false; };  // asked before each sample: whether to end without a result
};

// Opens the surveyed data as training would. Throws DataError where it would not start.
data::Splits open_for_training(const Survey& survey, const SurveyOptions& options, at::ScalarType dtype);

// Looks at all samples or, with options.verify, compares checksums and record counts and opens all parts. Nothing if it
// was asked to stop. Throws ConfigError for options that don't fit, and IoError where the machine failed.
std::optional<Survey> survey(const SurveyOptions& options, const SurveyCallbacks& callbacks = {});

}  // namespace lockstep::datasets
