// MNIST: 28×28 grey digits of 10 classes, from idx files or the JSON file of Paddle's course.
#pragma once

#include <string>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// Reads all of it into memory. `path` is a directory that holds either
//   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each as it is or
//   with .gz, or else mnist.json.gz or mnist.json;
// or it is such a JSON file itself, which has a validation part too. Throws DataError that names the file, the place in
// it and what to do: missing, damaged, mislabelled, no 28×28 digits of 10 classes.
Splits open_mnist(const std::string& path);

}  // namespace lockstep::data
