#include "lockstep/datasets/files/hash.h"

#include <xxhash.h>

#include <cstdio>

namespace lockstep::datasets {

uint64_t xxh3(std::span<const uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t xxh3(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string hex(uint64_t hash) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace lockstep::datasets
