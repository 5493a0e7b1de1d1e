// One sample, read in the way of all readers.
#pragma once

#include <span>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct SampleRead {
  int64_t index = 0;
  Draw draw;
};

// Throws ConfigError unless the fields have names of their own, of which "data" is the first, and tables are for
// bytes, and what comes encoded is an image.
void check_fields(const Dataset& dataset);

// Dataset::read outside of the calling thread's gradient and inference modes. An exception that is not the library's
// becomes a DataError that names the sample, and std::bad_alloc an IoError.
void read_sample(const Dataset& dataset, const SampleRead& sample, std::span<const at::Tensor> rows, ReadStats& stats);

// The same, but reads twice, over different old bytes. Throws ConfigError that names the field where the two differ:
// read() leaves some of it as it was, or uses more than the index and the draw.
void read_sample_twice(const Dataset& dataset, const SampleRead& sample, std::span<const at::Tensor> rows,
                       ReadStats& stats);

}  // namespace lockstep::data
