// Reads data files, whole or in part, within bounds: anything but a readable regular file of a sane size is a
// DataError, and what the machine did, such as an input/output error, is an IoError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

// A file open for reading. Throws DataError that names the file if it is missing, unreadable or no regular file. Any
// thread.
class DataFile {
 public:
  explicit DataFile(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Throws DataError if the file has more than `most` bytes.
  void check_size(uint64_t most) const;
  // The first `count` bytes, or all where the file has fewer.
  Bytes head(size_t count) const;
  // The whole file. Throws DataError if it has more than `most` bytes.
  Bytes all(uint64_t most) const;
  // The bytes [offset, offset + count) in `memory`, which is resized to them. Throws DataError if the file ends before.
  std::span<const uint8_t> part(uint64_t offset, size_t count, std::vector<uint8_t>& memory) const;
  // Tells the system that the bytes will be read soon. Returns at once.
  void will_need(uint64_t offset, uint64_t count) const;

 private:
  void read(uint64_t offset, std::span<uint8_t> to) const;

  std::string path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

// The whole file at `path`, in `memory`, which is resized to it. Throws as DataFile does.
std::span<const uint8_t> read_whole(const std::string& path, std::vector<uint8_t>& memory, uint64_t most = 1 << 30);

}  // namespace lockstep::datasets
