// EXIF's eight orientations: how a stored image is turned to be upright.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

// The rectangle of the stored image, of size `stored`, that holds the upright rectangle `upright`.
Rect stored_rect(const Rect& upright, Size stored, int orientation);

// Turns the part `part` of `from` into `to`.
void turn(const Pixels& from, const Rect& part, int orientation, Pixels& to);

// Turns a whole image of values in rows.
void turn(std::vector<uint32_t>& values, Size stored, int orientation);

}  // namespace lockstep::image
