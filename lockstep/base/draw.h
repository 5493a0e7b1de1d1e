// The random numbers of one read of one sample.
#pragma once

#include <cstdint>

#include "lockstep/base/philox.h"

namespace lockstep {

// The key of a read: equal draws of a sample give equal bits, on whatever rank and thread.
struct Draw {
  uint64_t seed = 0;
  uint32_t epoch = 0;
  uint64_t number = 0;  // the sample's number, or the draw's where samples repeat; below 2^56

  // The numbers of one of the things that are drawn for the sample. Slots have no number in common.
  RandomStream stream(uint32_t slot) const { return {seed, Purpose::kAugment, epoch, number, slot}; }
};

}  // namespace lockstep
