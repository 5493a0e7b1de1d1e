// Images from packed data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/datasets/image_source.h"

namespace lockstep::datasets {

// Opens a folder with the manifest.json and the shards of `lockstep pack`, of images with classes or with masks.
// `classes`, if any, are those of the training part, which the folder's must equal. Throws DataError that names what is
// missing, damaged or does not belong together.
std::shared_ptr<const ImageSource> packed_images(const std::string& path, const std::vector<std::string>& classes = {});

}  // namespace lockstep::datasets
