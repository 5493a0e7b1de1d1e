// Samples in their order, some at a time, read ahead: for evaluations.
#pragma once

#include <cstdint>

#include "lockstep/data/sample_queue.h"

namespace lockstep::data {

// The number of chunks of `chunk` samples, of which the last may be shorter. Throws ConfigError for a chunk below 1.
int64_t chunks_of(int64_t samples, int64_t chunk);

// One thread calls it.
class ChunkReader {
 public:
  // Reads the samples [first, last) of `dataset`, `chunk` at a time (the last time fewer). `workers` threads read
  // ahead; 0: next() reads by itself. The reader owns the data set if a std::shared_ptr does; one on the stack outlives
  // it, and its samples are waited for however long they take. Throws
  // ConfigError for more workers than kMostWorkers, IoError if the system has no more threads.
  ChunkReader(const Dataset& dataset, int64_t first, int64_t last, int64_t chunk, int workers, bool leaves_out = false);

  // Returns the next samples, with the bits that read_batch() gives them. Throws what Dataset::read throws, IoError
  // that names the sample that takes too long, BugError beyond the last.
  Batch next();

  // With `leaves_out`: the samples so far that can't be read. The batches lack their rows, and may have none.
  const std::vector<BadSample>& bad() const { return bad_; }

 private:
  SampleQueue queue_;
  std::vector<BadSample> bad_;
};

}  // namespace lockstep::data
