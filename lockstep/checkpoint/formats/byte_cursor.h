// A cursor over untrusted bytes: every read is checked against what is left.
#pragma once

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

// A position in borrowed bytes. Reading past their end throws a Fault.
class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  std::string_view take(uint64_t count) {
    if (count > left()) throw Fault{cat("announces ", count, " bytes, but only ", left(), " are left")};
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
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
    const size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) throw Fault{"a line without its end"};
    const std::string_view text = take(end - position_);
    ++position_;
    return text;
  }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
};

}  // namespace lockstep::checkpoint
