// Finds out which classes masks have.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/data/findings.h"
#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/image_source.h"
#include "lockstep/image/label_map.h"

namespace lockstep::datasets {

// All values that occur in the masks, ascending: 0 and 255. Decodes every mask, on `threads` threads. Throws DataError
// that names a mask that can't be read, and the first one, by its place in the list, with which there are more than 256
// values.
std::vector<uint32_t> scan_masks(const ImageSource& source, int threads);

// The classes of the values that the source knows, that a former scan of the same files has found, or that a scan
// finds: on one rank, for all. `findings` are that rank's, `stamp` gives the source's.
image::LabelMap labels_of(const ImageSource& source, int threads, const data::OnOneRank& on_one_rank,
                          data::Findings& findings, const std::function<std::string()>& stamp);

// "masks: 0 -> class 0, 255 -> class 1".
std::string text_of(const image::LabelMap& labels);

}  // namespace lockstep::datasets
