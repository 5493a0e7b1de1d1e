// A few large grey images with fine structures: what the U-Net's settings for micrographs are for.
#pragma once

#include <string>

namespace lockstep::recipes {

// Whether a folder of images and masks (DIR/imgs and DIR/masks, or their other names) has 6 to 64 images, all of them
// grey PNGs of `side` to 1,024 pixels a side. False for whatever can't be read.
bool are_micrographs(const std::string& folder, int side);

}  // namespace lockstep::recipes
