// A data set of images and their masks.
#pragma once

#include <memory>
#include <string>

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/datasets/image_source.h"
#include "lockstep/image/label_map.h"

namespace lockstep::datasets {

// Samples are "data", [channels, height, width] of setup.dtype, and "target", the int64 classes [height, width] of its
// pixels. With `augmented` both go through setup.train, and for_evaluation() gives the same through setup.evaluation;
// else all go through that one. The source has masks. `example` is Dataset::example(). Throws ConfigError for types
// that images don't come in.
std::shared_ptr<const data::Dataset> pair_dataset(std::shared_ptr<const ImageSource> source,
                                                  const image::LabelMap& labels, const ImageSetup& setup,
                                                  bool augmented, std::string example = {});

}  // namespace lockstep::datasets
