// Writes a shard of packed data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/packed/format.h"

namespace lockstep::datasets {

// What the manifest says of a shard.
struct ShardFile {
  std::string file;  // its name in the folder
  uint64_t records = 0, bytes = 0;
  uint64_t hash = 0;  // XXH3 of all behind the head
  bool operator==(const ShardFile&) const = default;
};

// One thread. All throw IoError where the disk fails.
class ShardWriter {
 public:
  // Creates folder/file. A shard that is not finished is no shard.
  ShardWriter(const std::string& folder, const std::string& file);

  // Adds a record, whose bytes are written at once. `source` is the sample's number in the data that is packed, `name`
  // its file's. Throws DataError that names one of 4 GiB or more.
  void add(const PackedRecord& record, uint64_t source, const std::string& name);
  uint64_t bytes() const { return at_; }  // so far

  // Writes the rest, and waits until all is on the disk.
  ShardFile finish(const std::vector<std::string>& class_names);

 private:
  void write(std::span<const uint8_t> bytes);

  std::string path_;
  ShardFile file_;
  Descriptor descriptor_;
  uint64_t at_ = 0;  // the end of what is written
  Xxh3 hash_;
  std::vector<uint8_t> buffer_, index_;
  std::vector<std::string> names_;
};

}  // namespace lockstep::datasets
