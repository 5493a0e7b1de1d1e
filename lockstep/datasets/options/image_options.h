// The options of data sets of images.
#pragma once

#include <array>
#include <optional>

#include "lockstep/config/option_set.h"

namespace lockstep::datasets {

// How much training images are changed at random.
enum class Augment { kNone, kFlip, kStandard, kStrong };
constexpr auto words(Augment) {
  return std::to_array<config::Word<Augment>>({{Augment::kNone, "none"},
                                               {Augment::kFlip, "flip"},
                                               {Augment::kStandard, "standard"},
                                               {Augment::kStrong, "strong"}});
}

struct ImageOptions {
  std::optional<Augment> augment;  // unset: standard
  bool exif = true;                // turn images as their EXIF orientation says
  bool fast_decode = false;        // scale JPEGs while decoding: other pixels, in less time

  void declare(config::OptionSet& options);
};

}  // namespace lockstep::datasets
