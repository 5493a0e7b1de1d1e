// Reads data files whole, within bounds: anything but a readable regular file of a sane size is a DataError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::datasets {

// Owned bytes, not initialised, so that memory is only used where something is written.
class Bytes {
 public:
  Bytes() = default;
  // Throws IoError that names `path` if memory is short.
  Bytes(size_t size, const std::string& path);

  uint8_t* data() { return data_.get(); }
  size_t size() const { return size_; }
  std::span<const uint8_t> span() const { return {data_.get(), size_}; }
  void shrink(size_t size) { size_ = size; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_ = 0;
};

// A file open for reading. Throws DataError that names the file if it is missing, unreadable or no regular file.
class DataFile {
 public:
  explicit DataFile(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // The first `count` bytes, or all where the file has fewer.
  Bytes head(size_t count) const;
  // The whole file. Throws DataError if it has more than `most` bytes.
  Bytes all(uint64_t most) const;

 private:
  std::string path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

}  // namespace lockstep::datasets
