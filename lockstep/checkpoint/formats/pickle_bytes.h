// The bytes of a pickle: in memory, or in a file, from which comes what is looked at.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"

namespace lockstep::checkpoint {

// One thread.
class PickleBytes {
 public:
  explicit PickleBytes(std::string_view bytes) : bytes_(bytes) {}  // borrowed
  // The first `bytes` of a file. Throws IoError if the process may have no address space for them.
  PickleBytes(std::shared_ptr<const StoredFile> file, uint64_t bytes);
  ~PickleBytes();
  PickleBytes(const PickleBytes&) = delete;
  PickleBytes& operator=(const PickleBytes&) = delete;

  size_t size() const { return bytes_.size(); }
  // Bytes that are there, valid as long as this. Throws as read_at() does.
  std::string_view at(uint64_t offset, uint64_t length) const {
    if (file_ != nullptr && length > 0 && (offset < there_begin_ || offset + length > there_end_))
      fetch(offset, length);
    return bytes_.substr(offset, length);
  }
  // The same of bytes that at() has given before.
  std::string_view there(uint64_t offset, uint64_t length) const { return bytes_.substr(offset, length); }
  // Copies bytes to memory, past what at() keeps if they are a file's.
  void copy(uint64_t offset, uint64_t length, char* memory) const;
  // A storage without memory for many bytes that lie in a file; nothing for others.
  std::optional<c10::Storage> left_in_file(uint64_t offset, uint64_t length) const;

 private:
  void fetch(uint64_t offset, uint64_t length) const;

  std::string_view bytes_;
  std::shared_ptr<const StoredFile> file_;
  mutable std::vector<bool> is_there_;                // by block of the file
  mutable uint64_t there_begin_ = 0, there_end_ = 0;  // what was fetched last
};

using PickleCursor = BasicByteCursor<const PickleBytes&>;

}  // namespace lockstep::checkpoint
