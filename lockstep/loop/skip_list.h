// The list of passed-over samples that all ranks of a world keep together.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/data/skipped_samples.h"
#include "lockstep/world/world.h"

namespace lockstep::loop {

// Returns an empty list of at most `most` samples, which are counted over all ranks; null for 0: the first bad sample
// is an error. The world outlives it.
std::shared_ptr<data::SkippedSamples> skip_list(const World& world, int64_t most);

}  // namespace lockstep::loop
