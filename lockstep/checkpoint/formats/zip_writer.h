// Writes a zip archive front to back. Entries are uncompressed, and their content is aligned in the file so that
// readers can map it. Sizes and checksums stand before the content; what needs 64 bits gets zip64 fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/formats/byte_sink.h"

namespace lockstep::checkpoint {

// Writes one archive into a borrowed sink. One thread.
class ZipWriter {
 public:
  static constexpr uint64_t kAlignment = 64;  // bytes, of every entry's content, as in torch.save's files

  explicit ZipWriter(ByteSink& sink) : sink_(sink) {}

  // Adds an entry. Names must be unique and shorter than 32 KiB. The content is read twice: for the checksum, then for
  // writing.
  void add(const std::string& name, std::string_view content);
  // Writes the directory, without which the file is no archive.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint32_t crc;
    uint64_t bytes;
    uint64_t offset;
  };
  void write(std::string_view bytes);
  static std::string directory_entry(const Entry& entry);

  ByteSink& sink_;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::checkpoint
