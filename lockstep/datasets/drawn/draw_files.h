// Drawn data as files, to try what people do with their own.
#pragma once

#include <cstdint>
#include <functional>

#include "lockstep/datasets/options/draw_options.h"

namespace lockstep::datasets {

// Makes options.out with train/CLASS/00001.jpg… and val/CLASS/…, or with imgs/00001.jpg… and masks/00001.png…. The same
// options give the same bytes. `on_progress` is told how many of how many are written; `stops` ends the drawing where
// it is. Returns how many were written. Throws ConfigError if there is anything at options.out, IoError.
int64_t draw_files(const DrawOptions& options, const std::function<void(int64_t done, int64_t samples)>& on_progress,
                   const std::function<bool()>& stops);

}  // namespace lockstep::datasets
