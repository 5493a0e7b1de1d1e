// A rank's part in an image of a checkpoint in a slot (slots/slots.h): its share of the bytes, with their checksums.
#pragma once

#include <span>

#include "lockstep/checkpoint/formats/pt_image.h"
#include "lockstep/checkpoint/slots/slots.h"

namespace lockstep::checkpoint {

// Begins this rank's filling of a slot and copies its share (PtImage::copy_share()) there. What is to be pinned, and
// Slots::end(), follow. Throws as these.
void fill_slot(const Slots& slots, int slot, const PtImage& image, std::span<const OwnSlice> slices = {}, int ranks = 1,
               int rank = 0);

}  // namespace lockstep::checkpoint
