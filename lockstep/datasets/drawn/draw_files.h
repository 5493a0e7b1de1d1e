// Drawn data as files, to try what people do with their own.
#pragma once

#include <cstdint>
#include <functional>

#include "lockstep/datasets/options/draw_options.h"

namespace lockstep::datasets {

// Makes options.out with train/CLASS/00001.jpg… and val/CLASS/…, or with imgs/00001.jpg… and masks/00001.png…. The same
// options give the same bytes. `on_progress` is told how many of how many are drawn. `stops` ends the drawing: what was
// drawn is removed. Returns how many were drawn. The folder is OUT.drawing until it is whole. Throws ConfigError if
// there is anything at options.out but an empty folder, or at that name; IoError.
int64_t draw_files(const DrawOptions& options, const std::function<void(int64_t done, int64_t samples)>& on_progress,
                   const std::function<bool()>& stops);

}  // namespace lockstep::datasets
