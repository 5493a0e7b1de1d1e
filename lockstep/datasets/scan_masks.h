// Finds out which classes masks have.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/data/findings.h"
#include "lockstep/datasets/image_source.h"
#include "lockstep/datasets/open_options.h"
#include "lockstep/image/label_map.h"

namespace lockstep::datasets {

// All values that occur in the masks, ascending: 0 and 255. Decodes every mask, on `threads` threads. Throws DataError
// that names a mask that can't be read, and the first one, by its place in the list, with which there are more than 256
// values.
std::vector<uint32_t> scan_masks(const ImageSource& source, int threads);

// What a former look at the same files has found, by its name; else what look() finds.
using Find = std::function<std::string(const std::string& name, const data::Findings::Look& look)>;

// The classes of the values that the source knows, that `options` name, or that a scan finds: on one rank, for all.
image::LabelMap labels_of(const ImageSource& source, const OpenOptions& options, const Find& find);

// Throws ConfigError where the masks have more values than options.classes. It names the mask and the value with which
// there are too many: it scans the masks again, on one rank.
void check_classes(const ImageSource& source, const image::LabelMap& labels, const OpenOptions& options);

// "masks: 0 -> class 0, 255 -> class 1".
std::string text_of(const image::LabelMap& labels);

}  // namespace lockstep::datasets
