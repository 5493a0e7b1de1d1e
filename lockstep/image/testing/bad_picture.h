// Files that are no pictures, or hardly: what all their makers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/philox.h"
#include "lockstep/base/text.h"

namespace lockstep::image::testing_support {

using FileBytes = std::vector<uint8_t>;

enum class Outcome : uint8_t { kDecoded, kRefused, kEither };

struct BadPicture {
  std::string name;
  FileBytes bytes;
  Outcome outcome = Outcome::kRefused;
  std::string why;  // part of the line with which it is refused
};
inline std::ostream& operator<<(std::ostream& out, const BadPicture& picture) { return out << picture.name; }

using BadPictures = std::vector<BadPicture>;

inline FileBytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

inline FileBytes operator+(FileBytes first, const FileBytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

inline FileBytes first_bytes(const FileBytes& bytes, size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count)};
}

inline FileBytes with(FileBytes bytes, size_t at, const FileBytes& others) {
  for (size_t i = 0; i < others.size(); ++i) bytes.at(at + i) = others[i];
  return bytes;
}

inline FileBytes inserted(FileBytes bytes, size_t at, const FileBytes& others) {
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), others.begin(), others.end());
  return bytes;
}

inline FileBytes repeated(const FileBytes& bytes, size_t times) {
  FileBytes all;
  all.reserve(bytes.size() * times);
  for (size_t i = 0; i < times; ++i) all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

// A number of `width` bytes, highest first.
inline FileBytes big_endian(uint64_t value, size_t width) {
  FileBytes bytes;
  for (size_t i = width; i-- > 0;) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  return bytes;
}

// `cuts` beginnings of a sound file, which must be refused, and `flips` copies with a few bits turned, which may be.
inline void add_damaged(BadPictures& to, const std::string& name, const FileBytes& sound, size_t cuts, uint64_t flips) {
  for (size_t i = 0; i < cuts; ++i) {
    const size_t length = sound.size() * i / cuts;
    to.push_back({cat(name, " cut at ", length), first_bytes(sound, length), Outcome::kRefused, ""});
  }
  for (uint64_t i = 0; i < flips; ++i) {
    RandomStream random(1, Purpose::kSynthetic, 1, i);
    FileBytes bytes = sound;
    for (uint32_t n = 0; n <= i % 4; ++n) {
      const uint32_t bit = random.below(static_cast<uint32_t>(8 * bytes.size()));
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
    to.push_back({cat(name, " with turned bits, ", i), bytes, Outcome::kEither, ""});
  }
}

}  // namespace lockstep::image::testing_support
