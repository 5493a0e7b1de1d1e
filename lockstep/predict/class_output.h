// Where a table of classes goes: a line for each image, as soon as it is known.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/train/options/predict_command.h"

namespace lockstep::predict {

// One thread.
class ClassOutput {
 public:
  struct Options {
    int64_t top = 5;  // classes of an image
    train::TableFormat format = train::TableFormat::kText;
    std::vector<std::string> class_names = {};  // empty: numbers
    std::string file = {};                      // empty: `print` gets the lines
    std::function<void(const std::string&)> print = {};
  };
  explicit ClassOutput(Options options) : options_(std::move(options)) {}

  // Adds a line for an image with these scores [classes]. The first one creates the file, and tells CSV's columns.
  // Throws DataError as likeliest(), IoError that names the file.
  void add(const std::string& image, const at::Tensor& scores);

 private:
  void begin(size_t classes);
  void write(const std::string& text) const;

  Options options_;
  Descriptor file_;
  bool begun_ = false;
};

// Throws ConfigError if `output` is one of these files by another name or its own.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& files);

}  // namespace lockstep::predict
