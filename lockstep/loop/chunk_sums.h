// Sums over all samples of a data set, each counted once. Their bits are the same at any number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/skipped_samples.h"

namespace lockstep::loop {

// The samples that this rank computes, the first and one past the last; equal where it has none.
struct OwnSamples {
  int64_t first = 0;
  int64_t last = 0;
};
OwnSamples own_samples(comm::Communicator& comm, int64_t samples, int64_t chunk);

// Cuts `samples` samples into chunks of `chunk` each, of which the last may be shorter. One rank calls
// measure(first sample, samples) for each chunk, in order; the results are added in the order of the chunks. Every call
// returns the same number of sums, or none for a chunk of whose samples none can be read. A collective. Throws, on all
// ranks, what `measure` throws on one, and ConfigError if the numbers of sums differ, and for a chunk below 1.
std::vector<double> chunk_sums(comm::Communicator& comm, int64_t samples, int64_t chunk,
                               const std::function<std::vector<double>(int64_t first, int64_t count)>& measure);

// The same of batches: one rank calls measure(batch) for each chunk of the data, whose samples `workers` threads read
// ahead (data/chunk_reader.h). With `skipped`, samples that can't be read are left out and listed there, and measure()
// is not called for a batch without rows; null: the first one is an error. Throws what reading throws, too, DataError
// as SkippedSamples::add, and if no sample can be read.
std::vector<double> batch_sums(comm::Communicator& comm, const data::Dataset& data, int64_t chunk, int workers,
                               const std::function<std::vector<double>(data::Batch batch)>& measure,
                               data::SkippedSamples* skipped = nullptr);

}  // namespace lockstep::loop
