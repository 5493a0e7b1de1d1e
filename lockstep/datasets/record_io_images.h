// Images from MXNet's RecordIO.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/image_source.h"

namespace lockstep::datasets {

struct RecordIoOptions {
  int64_t classes = 0;  // of the training part; 0: as many as the labels need
  data::OnOneRank on_one_rank = {};
};

// Opens x.rec, whose labels are whole numbers from 0; x.idx is not needed, and checked if it is there. Reads the heads
// of all records. Throws DataError that names file and byte.
std::shared_ptr<const ImageSource> record_io_images(const std::string& path, const RecordIoOptions& options = {});

}  // namespace lockstep::datasets
