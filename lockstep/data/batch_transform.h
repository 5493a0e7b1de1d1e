// What is done to a lane's whole batch once its samples have been read, such as MixUp.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/philox.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The key of the random numbers of one lane's batch. Ranks and threads are no part of it.
struct LaneDraw {
  uint64_t seed = 0;
  uint32_t epoch = 0;
  int64_t step = 0;  // within the epoch, below 2^36
  int lane = 0;      // of all lanes, below 2^20

  // The numbers of one of the things that are drawn for the batch. Slots have no number in common.
  RandomStream stream(uint32_t slot) const {
    return {seed, Purpose::kMix, epoch, static_cast<uint64_t>(step) << 20 | static_cast<uint64_t>(lane), slot};
  }
};

// Any thread may call it.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;

  // Throws ConfigError for a data set that it can't work with.
  virtual void check(const Dataset& dataset) const = 0;

  // Changes a lane's batch of that data set in place, and may add tensors of as many rows. A function of the batch, the
  // draw and what the data set says of itself. A batch may have no rows: its tensors get the dtypes and the shapes of a
  // row that those of any other batch get.
  virtual void apply(Batch& batch, const Dataset& dataset, const LaneDraw& draw) const = 0;

  // Whether it may come before images are normalised, with the same result as after it: it moves pixels, and computes
  // with none. Where it may not, bytes with a table (Field::table) are refused.
  virtual bool takes_bytes() const { return false; }

  // What it does, for a run's header. A loop's state compares it.
  virtual std::string text() const = 0;
};

}  // namespace lockstep::data
