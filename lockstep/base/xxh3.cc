#include "lockstep/base/xxh3.h"

#include <xxhash.h>

#include <cstdio>
#include <new>

namespace lockstep {

uint64_t xxh3(std::span<const uint8_t> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t xxh3(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

struct Xxh3::State {
  XXH3_state_t* hash = XXH3_createState();
  State() {
    if (hash == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(hash);
  }
  State(const State&) = delete;
  ~State() { XXH3_freeState(hash); }
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {}
Xxh3::~Xxh3() = default;

void Xxh3::add(const void* bytes, size_t count) { XXH3_64bits_update(state_->hash, bytes, count); }

uint64_t Xxh3::value() const { return XXH3_64bits_digest(state_->hash); }

std::string hex(uint64_t hash) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace lockstep
