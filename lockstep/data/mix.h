// MixUp (Zhang et al., "mixup: beyond empirical risk minimization", 2018) and CutMix (Yun et al., 2019) of a lane's
// batch, as torchvision defines them: row i is mixed with row i - 1, and row 0 with the last one.
//
// MixUp: λ of Beta(alpha, alpha); row i becomes λ · row i + (1 - λ) · row i-1. CutMix: a rectangle of the share 1 - λ,
// around a point drawn from the image, is row i-1's; λ is then the share that its part within the image leaves.
//
// The target changes with the images, as torchvision's does: "target" becomes float32 probabilities [n, classes], the
// own class's share λ and the partner's 1 - λ, which at::cross_entropy_loss takes as it takes classes. So it is in
// every batch, in those without rows too. Other tensors stay the row's own: numbers and vectors of the sample, such as
// a weight. Those of more dimensions, such as a mask, are refused, for they would not go with their images.
//
// The partners are the lane's own, and λ is one number for a lane's batch, keyed by (seed, epoch, step, lane): the
// number of ranks and threads does not show.
#pragma once

#include <memory>

#include "lockstep/data/batch_transform.h"

namespace lockstep::data {

struct MixOptions {
  double mixup = 0;   // alpha, at least 1e-300 (beta.h); 0: no MixUp
  double cutmix = 0;  // alpha; 0: no CutMix
};

// With both options, a coin decides for each batch of a lane. Of the data set, "data" is images [C, H, W], for MixUp of
// a floating-point type, and "target" an int64 class, one of Dataset::classes(). Throws ConfigError for options out of
// range, or none.
std::shared_ptr<const BatchTransform> mix(const MixOptions& options);

}  // namespace lockstep::data
