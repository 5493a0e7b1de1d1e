// Compares packed data with its checksums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/datasets/packed/manifest.h"

namespace lockstep::datasets {

struct Verified {
  uint64_t shards = 0, bytes = 0;  // that the manifests name
  // A line for each manifest that can't be read, for each shard that is missing, damaged or not the manifest's, and for
  // each damaged record of one. Empty where all is as it was written.
  std::vector<std::string> problems;
};

// Reads every byte of a folder of packed data, or of its parts train/, val/ …, on `threads` threads. What a run would
// open and can't is a problem, too. Throws IoError where the machine failed.
Verified verify_packed(const std::string& path, int threads);

}  // namespace lockstep::datasets
