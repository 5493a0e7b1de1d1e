// Grey images that are turned, moved and scaled a little at random, each time that they are read.
#pragma once

#include <memory>

#include "lockstep/data/dataset.h"
#include "lockstep/image/affine.h"

namespace lockstep::datasets {

// The same samples warped. `images` has float fields data, [1, H, W] from 0 to 1, and target; its pixels are rounded to
// 8 bits. for_evaluation() is `images`.
std::shared_ptr<const data::Dataset> warped(std::shared_ptr<const data::Dataset> images,
                                            const image::AffineOptions& options);

}  // namespace lockstep::datasets
