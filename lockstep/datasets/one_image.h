// One picture as a data set of one sample: what a network is to say something about.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/open_options.h"

namespace lockstep::datasets {

// The file, as setup.evaluation makes it; the target is -1. Throws DataError that names the file.
std::shared_ptr<const data::Dataset> one_image(const std::string& file, const ImageSetup& setup);

// The set-up of a whole image of any proportions, as open_pairs() would see it where it comes first: the shorter side
// becomes options.size, or options.scale times its own, both a multiple of 16. `channels`, 1 to 4, are the network's.
// Throws DataError for an image that has more, or would become too large.
ImageSetup whole_image_setup(const std::string& file, const OpenOptions& options, int channels);

// The set-up of a grey image that is scaled to these sides, whatever its proportions, with values from 0 to 1.
ImageSetup grey_image_setup(const OpenOptions& options, image::Size size);

}  // namespace lockstep::datasets
