#include "lockstep/data/fingerprint.h"

#include <xxhash.h>

#include <cstdio>
#include <new>

namespace lockstep::data {

struct Fingerprint::State {
  XXH3_state_t* hash = XXH3_createState();
  State() {
    if (hash == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(hash);
  }
  State(const State&) = delete;
  ~State() { XXH3_freeState(hash); }
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) {}
Fingerprint::~Fingerprint() = default;

void Fingerprint::add(const void* bytes, size_t count) { XXH3_64bits_update(state_->hash, bytes, count); }

std::string Fingerprint::hex() const {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(state_->hash)));
  return digits;
}

}  // namespace lockstep::data
