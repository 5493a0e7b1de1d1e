// Folders of small pictures made on the spot: a class of images has a colour of its own, and a mask shows where a disc
// is.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/image/pixels.h"

namespace lockstep::e2e {

// A picture of class `label` of `classes`, of about `side` pixels a side; another one for each number.
image::Pixels class_picture(uint32_t label, uint32_t classes, uint32_t number, int side = 64);

// Writes `a_class` JPEGs of each of `classes` classes: `folder`/class_00/0.jpg and so on. Sizes, subsampling and
// orientations differ.
void write_class_folders(const std::string& folder, uint32_t classes, uint32_t a_class, uint32_t seed = 1);

// Writes `count` pairs of PNGs, `folder`/imgs/N.png and masks/N.png, whose values are 0 and 255.
void write_image_and_mask_folders(const std::string& folder, uint32_t count, uint32_t seed = 1);

}  // namespace lockstep::e2e
