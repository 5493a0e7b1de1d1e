// Where the contents of a zip archive's entries lie in the file, which libzip does not tell. It knows plain archives
// alone, such as torch.save writes: uncompressed entries, a directory that ends the file. Of others it knows nothing,
// and their entries are read through libzip (zip_archive.h). A checksum is what vouches for a place that it gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "lockstep/checkpoint/formats/file_reader.h"

namespace lockstep::checkpoint {

struct ZipContent {
  uint64_t offset = 0, bytes = 0;  // in the file
  uint32_t checksum = 0;           // CRC-32 of the bytes
};

// Borrows the file. One thread.
class ZipDirectory {
 public:
  // Throws IoError if the file can't be read.
  ZipDirectory(std::string path, const InputFile& file);

  // Nothing for an entry that is compressed or does not lie inside the file.
  std::optional<ZipContent> find(const std::string& name) const;

 private:
  struct Entry {
    uint64_t header = 0, bytes = 0;
    uint32_t checksum = 0;
  };
  void read_entries();

  std::string path_;
  const InputFile& file_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace lockstep::checkpoint
