// Images from files of many: packed data, and MXNet's RecordIO.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/image_source.h"

namespace lockstep::datasets {

// Opens a folder with the manifest.json and the shards of `lockstep pack`, of images with classes or with masks.
// `classes`, if any, are those of the training part, which the folder's must equal. Throws DataError that names what is
// missing, damaged or does not belong together.
std::shared_ptr<const ImageSource> packed_images(const std::string& path, const std::vector<std::string>& classes = {});

struct RecordIoOptions {
  int64_t classes = 0;  // of the training part; 0: as many as the labels need
  data::OnOneRank on_one_rank = {};
};

// Opens x.rec, whose labels are whole numbers from 0; x.idx is not needed, and checked if it is there. Reads the heads
// of all records. Throws DataError that names file and byte.
std::shared_ptr<const ImageSource> record_io_images(const std::string& path, const RecordIoOptions& options = {});

}  // namespace lockstep::datasets
