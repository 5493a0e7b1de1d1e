// Packs a data set of images into shards.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/datasets/options/pack_options.h"
#include "lockstep/datasets/packed/manifest.h"

namespace lockstep::datasets {

struct PackProgress {
  int64_t done = 0, samples = 0;  // of all parts
  uint64_t bytes = 0;             // written
};

struct PackedPart {
  std::string name;  // "train"; "" of data without parts
  std::string text;  // of what was packed: "250 JPEGs of 250 classes in photos"
  int64_t samples = 0;
  uint64_t stored_bytes = 0;         // of these samples before
  std::vector<std::string> emptied;  // classes of which all samples were left out
  Manifest manifest;
};

struct PackResult {
  std::string out;  // the folder, absolute
  Packed kind = Packed::kImages;
  std::vector<PackedPart> parts;
  std::vector<std::string> left_out;  // a line for each sample that can't be decoded
  std::vector<std::string> warnings;  // where data are that were replaced and could not be removed; a line each
};

struct PackCallbacks {
  std::function<void(const PackProgress&)> on_progress = [](const PackProgress&) {};  // after each sample
  std::function<bool()> stops = [] { return false; };  // asked before each sample: whether to end without a result
};

// Packs what open_stored opens at options.data into options.out, each part into a folder of its own, in an order that
// options.seed tells. The files are the same, byte for byte, at any number of threads. Returns nothing, and leaves
// nothing behind, if it was asked to stop. Throws ConfigError for options that don't fit and for a folder that can't be
// packed into, DataError that names the first sample that can't be decoded, beyond options.skip_bad of them, IoError
// where the machine failed; nothing is left behind then.
std::optional<PackResult> pack(const PackOptions& options, const PackCallbacks& callbacks = {});

}  // namespace lockstep::datasets
