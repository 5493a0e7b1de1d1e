// Finds out which classes masks have.
#pragma once

#include <string>
#include <vector>

#include "lockstep/datasets/pairs.h"
#include "lockstep/image/label_map.h"

namespace lockstep::datasets {

// All values that occur in the masks, ascending: 0 and 255. Decodes every mask, on `threads` threads. Throws DataError
// that names a mask that can't be read, and the first one, by its place in the list, with which there are more than 256
// values.
std::vector<uint32_t> scan_masks(const Pairs& pairs, int threads);

// The same on one rank, for all.
image::LabelMap labels_of(const Pairs& pairs, int threads, const data::OnOneRank& on_one_rank);

// "masks: 0 -> class 0, 255 -> class 1".
std::string text_of(const image::LabelMap& labels);

}  // namespace lockstep::datasets
