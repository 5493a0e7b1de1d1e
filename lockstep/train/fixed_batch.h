// A lane's batch in memory that stays, for steps that are recorded on a GPU (parallel/lane_graph.h).
#pragma once

#include "lockstep/data/loader.h"

namespace lockstep::train {

// One thread.
class FixedBatch {
 public:
  // `channels_last`: the layout that the model takes images in.
  explicit FixedBatch(bool channels_last) : channels_last_(channels_last) {}

  // Moves the batch's tensors into the memory that stays, by a copy on their device. A smaller batch than the one
  // before, such as an epoch's last, stays where it is. Returns whether the memory is other than before, because the
  // batch is the first, larger, or of other shapes or dtypes: then what was recorded is void.
  bool place(data::LaneBatch& batch);

 private:
  bool fits(const data::LaneBatch& batch) const;

  bool channels_last_;
  data::LaneBatch kept_;
};

}  // namespace lockstep::train
