// Reads samples at once, for evaluations and tests.
#pragma once

#include <span>

#include "lockstep/data/dataset.h"
#include "lockstep/data/read_sample.h"

namespace lockstep::data {

// Returns these samples in this order, read on the calling thread. Throws what read_sample throws.
Batch read_samples(const Dataset& dataset, std::span<const SampleRead> samples);

// Returns the samples of these numbers in this order, read on the calling thread. Repeats are fine; no numbers give
// tensors of 0 rows. Each sample's draw is (seed, epoch, its number). Throws what read_sample throws.
Batch read_batch(const Dataset& dataset, std::span<const int64_t> indices, uint32_t epoch = 0, uint64_t seed = 0);

}  // namespace lockstep::data
