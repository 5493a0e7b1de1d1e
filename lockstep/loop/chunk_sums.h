// Sums over all samples of a data set, each counted once. Their bits are the same at any number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::loop {

// The samples that this rank computes, the first and one past the last; equal where it has none.
struct OwnSamples {
  int64_t first = 0;
  int64_t last = 0;
};
OwnSamples own_samples(comm::Communicator& comm, int64_t samples, int64_t chunk);

// Cuts `samples` samples into chunks of `chunk` each, of which the last may be shorter. One rank calls
// measure(first sample, samples) for each chunk, in order; the results are added in the order of the chunks. Every call
// returns the same number of sums. A collective. Throws, on all ranks, what `measure` throws on one, and ConfigError if
// the numbers of sums differ, and for a chunk below 1.
std::vector<double> chunk_sums(comm::Communicator& comm, int64_t samples, int64_t chunk,
                               const std::function<std::vector<double>(int64_t first, int64_t count)>& measure);

}  // namespace lockstep::loop
