// Samples in their order, some at a time, read ahead: for evaluations.
#pragma once

#include <cstdint>

#include "lockstep/data/sample_queue.h"

namespace lockstep::data {

// One thread calls it.
class ChunkReader {
 public:
  // Reads the samples [first, last) of `dataset`, `chunk` at a time (the last time fewer). `workers` threads read
  // ahead; 0: next() reads by itself. The reader owns the data set if a std::shared_ptr does; one on the stack outlives
  // it, and its samples are waited for however long they take. Throws
  // ConfigError for more workers than kMostWorkers, IoError if the system has no more threads.
  ChunkReader(const Dataset& dataset, int64_t first, int64_t last, int64_t chunk, int workers);

  // Returns the next samples, with the bits that read_batch() gives them. Throws what Dataset::read throws, IoError
  // that names the sample that takes too long, BugError beyond the last.
  Batch next() { return queue_.next().batch; }

 private:
  SampleQueue queue_;
};

}  // namespace lockstep::data
