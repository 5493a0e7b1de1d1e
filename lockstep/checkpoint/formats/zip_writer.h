// Writing a zip archive front to back: entries uncompressed, their content aligned in the file so that readers can map
// it. Sizes and checksums stand before the content; what needs 64 bits gets zip64 fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/formats/byte_sink.h"

namespace lockstep::checkpoint {

// One archive into a sink that it borrows. One thread.
class ZipWriter {
 public:
  static constexpr uint64_t kAlignment = 64;  // of every entry's content, as torch.save has it

  explicit ZipWriter(ByteSink& sink) : sink_(sink) {}

  // Names must be unique and shorter than 32 KiB. The content is read twice: checksum, then write.
  void add(const std::string& name, std::string_view content);
  // Writes the directory. Without it there is no archive.
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
