// The base of data sets whose images are drawn on demand: square RGB images, each a function of (seed, split, index)
// alone.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

class DrawnImages : public data::Dataset {
 public:
  int64_t size() const final { return size_; }
  // A function of all that decides a sample.
  std::string fingerprint() const final {
    return cat(kind_, ", seed ", seed_, ", part ", split_, ", ", size_, " of ", side_);
  }
  std::string description() const final {
    return cat(kind_, " drawn on the spot (seed ", seed_, "), ", split_ == 0 ? "train" : "test", ", ", size_,
               " images of ", side_, "×", side_);
  }

 protected:
  // `kind` names the images in descriptions and errors. Throws ConfigError for a side or size out of range.
  DrawnImages(const char* kind, uint64_t seed, uint32_t split, int side, int64_t size)
      : seed_(seed), split_(split), side_(side), kind_(kind), size_(size) {
    if (size_ < 1) throw ConfigError(kind_, ": ", size_, " of them are out of range; ask for at least 1");
    if (side_ < 16 || side_ > 4096) throw ConfigError(kind_, ": ", side_, " pixels a side, not 16 to 4096");
  }

  data::Field image() const { return {.name = "data", .dtype = at::kFloat, .shape = {3, side_, side_}}; }

  const uint64_t seed_;
  const uint32_t split_;  // 0: train, 1: test
  const int side_;        // pixels

 private:
  const char* kind_;
  const int64_t size_;
};

}  // namespace lockstep::datasets
