// A data set of encoded images and their classes.
#pragma once

#include <memory>

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/image_source.h"

namespace lockstep::datasets {

// Samples are "data", [channels, height, width] of setup.dtype, and "target", an int64 class. With `augmented` they go
// through setup.train, and for_evaluation() gives the same images through setup.evaluation; else all go through that
// one. Throws ConfigError for types that images don't come in.
std::shared_ptr<const data::Dataset> image_dataset(std::shared_ptr<const ImageSource> source, const ImageSetup& setup,
                                                   bool augmented);

}  // namespace lockstep::datasets
