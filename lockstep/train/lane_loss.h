// The loss of a lane of training data, as the recipe computes it.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/data/loader.h"
#include "lockstep/train/parts.h"

namespace lockstep::train {

class LaneLoss {
 public:
  explicit LaneLoss(const Parts& parts) : parts_(parts) {}  // they outlive this

  // The lane with images in the memory format that the network takes.
  data::Batch input_of(const data::LaneBatch& lane) const;
  // The mean over the lane's samples, of what `model` makes of them. With --detect-anomaly it throws DataError, naming
  // rank, lane and layer, for one that is not finite. Any thread.
  at::Tensor of(const Model& model, const data::LaneBatch& lane) const;
  // The same of an output that is at hand, finite or not: where it comes from other ranks, they know where it began.
  at::Tensor of(const at::Tensor& output, const data::LaneBatch& lane) const;

 private:
  const Parts& parts_;
};

}  // namespace lockstep::train
