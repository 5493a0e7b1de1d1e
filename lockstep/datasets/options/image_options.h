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

// What is turned as an image's EXIF orientation says: nothing, the image alone, the image and its mask, or, with kOn,
// the image, and its mask if the sizes of both tell that it is stored as the image.
enum class Exif { kOn, kOff, kBoth, kImage };
constexpr auto words(Exif) {
  return std::to_array<config::Word<Exif>>(
      {{Exif::kOn, "on"}, {Exif::kOff, "off"}, {Exif::kBoth, "both"}, {Exif::kImage, "image"}});
}

struct ImageOptions {
  std::optional<Augment> augment;  // unset: standard
  std::optional<Exif> exif;        // unset: on
  bool fast_decode = false;        // scale JPEGs while decoding: other pixels, in less time

  // Whether images are turned as their EXIF orientation says.
  bool turns() const { return exif != Exif::kOff; }

  void declare(config::OptionSet& options);
};

}  // namespace lockstep::datasets
