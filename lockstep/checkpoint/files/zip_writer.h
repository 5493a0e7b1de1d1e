// Writes a zip archive (zip_layout.h) front to back. Sizes and checksums stand before the content.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/files/zip_layout.h"

namespace lockstep::checkpoint {

// Writes one archive into a borrowed sink. One thread.
class ZipWriter {
 public:
  explicit ZipWriter(ByteSink& sink) : sink_(sink) {}

  // Adds an entry. Names must be unique and shorter than 32 KiB. The content is read twice: for the checksum, then for
  // writing.
  void add(const std::string& name, std::string_view content);
  // Writes the directory, without which the file is no archive.
  void finish();

 private:
  ByteSink& sink_;
  ZipLayout layout_;
};

}  // namespace lockstep::checkpoint
