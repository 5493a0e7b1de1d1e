// FNV-1a (Fowler, Noll, Vo): a small hash with the same value on all machines. It does not resist hostile input.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

constexpr uint64_t kFnvSeed = 0xcbf29ce484222325;

// Extends the hash `hash` by one value, or by the bytes of a text one by one. A hash begins as kFnvSeed.
constexpr uint64_t fnv1a(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001b3; }
constexpr uint64_t fnv1a(uint64_t hash, std::string_view text) {
  for (const char letter : text) hash = fnv1a(hash, uint64_t{static_cast<uint8_t>(letter)});
  return hash;
}

}  // namespace lockstep
