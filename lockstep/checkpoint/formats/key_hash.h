// A hash of dict keys whose collisions nobody can choose: SipHash-1-3 (Aumasson, Bernstein) with a secret of the
// process.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// SipHash-1-3 of the text under a secret.
uint64_t sip_hash(std::string_view text, const std::array<uint64_t, 2>& secret);

// Differs from process to process: nothing that is written may depend on it.
uint64_t key_hash(const Key& key);

}  // namespace lockstep::checkpoint
