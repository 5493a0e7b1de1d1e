// The options of drawing data into files.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "lockstep/config/option_set.h"
#include "lockstep/config/words.h"

namespace lockstep::datasets {

// shapes: ten classes of textured shapes, JPEGs in a folder for each class. masks: images of shapes, JPEGs, with the
// masks that segment them, PNGs.
enum class DrawnKind { kShapes, kMasks };
constexpr auto words(DrawnKind) {
  return std::to_array<config::Word<DrawnKind>>({{DrawnKind::kShapes, "shapes"}, {DrawnKind::kMasks, "masks"}});
}

struct DrawOptions {
  DrawnKind kind = DrawnKind::kShapes;
  std::string out;        // the folder that is made
  int64_t samples = 500;  // to train on; a tenth as many of shapes are drawn to validate on
  int size = 128;         // pixels a side
  int64_t seed = 1;

  void declare(config::OptionSet& options);
};

}  // namespace lockstep::datasets
