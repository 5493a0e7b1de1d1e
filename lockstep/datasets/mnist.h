// MNIST: 28×28 grey digits of 10 classes, from idx files or the JSON file of Paddle's course.
#pragma once

#include <string>

#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

// Reads the whole data set into memory. `path` is
//   a directory with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
//   t10k-labels-idx1-ubyte, each plain or with .gz;
//   or a directory with mnist.json.gz or mnist.json;
//   or such a JSON file itself.
// A JSON file also has a validation part. Throws DataError that names the file, the position in it and what to do:
// missing, damaged, mislabelled, not 28×28 digits of 10 classes.
data::Splits open_mnist(const std::string& path);

}  // namespace lockstep::datasets
