// A few large grey images with fine structures: what the U-Net's settings for micrographs are for.
#pragma once

#include <string>

namespace lockstep::recipes {

// Whether a folder of images and masks (DIR/imgs, DIR/masks) has at most 64 images, all of them grey PNGs of at least
// `side` pixels a side. False for whatever can't be read.
bool are_micrographs(const std::string& folder, int side);

}  // namespace lockstep::recipes
