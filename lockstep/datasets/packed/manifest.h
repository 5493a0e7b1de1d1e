// The manifest of a folder of packed data: what its shards are and what was packed.
#pragma once

#include <string>
#include <vector>

#include "lockstep/datasets/packed/shard_writer.h"

namespace lockstep::datasets {

struct Manifest {
  std::string source;                    // the fingerprint of the data that was packed
  std::string packing;                   // how: "resized to 256, JPEG of quality 90"
  std::vector<std::string> class_names;  // UTF-8, or what comes closest
  std::vector<ShardFile> shards;

  uint64_t records() const;
  std::string fingerprint() const;  // of the packed data itself
};

// Writes folder/manifest.json, and waits until it is on the disk. Throws IoError.
void write_manifest(const std::string& folder, const Manifest& manifest);

// Reads it. Throws DataError that names the file and what is wrong in it.
Manifest read_manifest(const std::string& folder);

}  // namespace lockstep::datasets
