// A data set of grey images and their classes, held in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

struct GreyImages {
  // count × rows × columns: bytes (0 to 255), or floats (0 to 1). Batches hold float(byte) / 255, or the float itself.
  std::variant<std::vector<uint8_t>, std::vector<float>> pixels;
  std::vector<uint8_t> labels;  // count
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t classes = 0;
  std::string name;  // "MNIST train from /data/mnist": begins errors and the description
};

// Throws DataError that names `name` unless there are images, as many labels, and every label is below `classes`.
std::shared_ptr<const data::Dataset> make_dataset(GreyImages images);

}  // namespace lockstep::datasets
