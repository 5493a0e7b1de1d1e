// A cursor over untrusted bytes: every read is checked against what is left.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lockstep/base/text.h"

namespace lockstep::checkpoint {

static_assert(std::endian::native == std::endian::little, "checkpoints hold little-endian numbers, read as they lie");

// A fault in the bytes. Code that does not know their file and offset throws it; code that does turns it into a
// DataError that names both.
struct Fault {
  std::string text;
};

struct BytesInMemory {
  std::string_view bytes;
  explicit BytesInMemory(std::string_view all) : bytes(all) {}
  size_t size() const { return bytes.size(); }
  std::string_view at(uint64_t offset, uint64_t length) const { return bytes.substr(offset, length); }
};

// A position in borrowed bytes. Reading past their end throws a Fault.
template <typename Bytes>
class BasicByteCursor {
 public:
  explicit BasicByteCursor(const auto& bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  std::string_view take(uint64_t count) {
    const size_t from = position_;
    skip(count);
    return bytes_.at(from, count);
  }

  // Without a look at the bytes.
  void skip(uint64_t count) {
    if (count > left()) throw Fault{cat("announces ", count, " bytes, but only ", left(), " are left")};
    position_ += count;
  }

  // A little-endian number of T's size.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  // The text up to the next newline, which is skipped.
  std::string_view line() {
    for (size_t looked_at = 256;; looked_at *= 2) {
      const size_t length = bytes_.at(position_, std::min(looked_at, left())).find('\n');
      if (length != std::string_view::npos) {
        const std::string_view text = take(length);
        skip(1);
        return text;
      }
      if (looked_at >= left()) throw Fault{"a line without its end"};
    }
  }

 private:
  Bytes bytes_;
  size_t position_ = 0;
};

using ByteCursor = BasicByteCursor<BytesInMemory>;

}  // namespace lockstep::checkpoint
