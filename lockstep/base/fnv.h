// FNV-1a (Fowler, Noll, Vo): a small hash that is the same on all machines; not for hostile input.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

constexpr uint64_t kFnvSeed = 0xcbf29ce484222325;

// The hash so far, with one value more, or the bytes of a text one by one.
constexpr uint64_t fnv1a(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001b3; }
constexpr uint64_t fnv1a(uint64_t hash, std::string_view text) {
  for (const char letter : text) hash = fnv1a(hash, uint64_t{static_cast<uint8_t>(letter)});
  return hash;
}

}  // namespace lockstep
