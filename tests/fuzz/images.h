// One format's files, read in each of the ways that there are.
#pragma once

#include <cstring>
#include <vector>

#include "fuzz.h"
#include "lockstep/base/fnv.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/format_reader.h"

namespace lockstep::fuzz {

// What one way of reading gave.
struct Decoded {
  bool sound = false;
  image::Rect place;
  image::Pixels pixels;
};

class ImageFuzzer {
 public:
  explicit ImageFuzzer(image::Format format) : format_(format) {}

  // Returns -1 for a file of another format, which libFuzzer need not keep.
  int run(std::span<const uint8_t> bytes) {
    if (image::format_of(bytes) != format_) return -1;
    bytes_ = bytes;
    const Decoded whole = decoded({}, {});
    const image::Size size = decoder_.info().upright();
    decoded({.channels = 1}, {});
    decoded({.exif = false}, {});
    decoded({.fast = true}, {.width = std::min(size.width, 9), .height = std::min(size.height, 9)});
    reads(name_, [&] {
      decoder_.open(bytes_, name_, {.limits = kLimits});
      decoder_.decode_values(values_);
      check(values_.size() == static_cast<size_t>(size.width) * static_cast<size_t>(size.height), "a value a pixel");
    });
    if (whole.sound) check_crops(whole, size);
    return 0;
  }

 private:
  static constexpr image::Limits kLimits{.pixels = 1 << 18, .scanned = 1 << 22};

  // The part `crop`, or with no size the whole image.
  Decoded decoded(image::DecodeOptions options, image::Rect crop) {
    Decoded result;
    options.limits = kLimits;
    result.sound = reads(name_, [&] {
      const image::Size size = decoder_.open(bytes_, name_, options).upright();
      if (crop.width == 0) crop = {0, 0, size.width, size.height};
      result.place = decoder_.decode(crop, options.fast ? image::Size{3, 3} : crop.size(), result.pixels);
      check(options.fast || result.place.size() == crop.size(), "a crop of another size");
      check(result.place.x >= 0 && result.place.y >= 0 &&
                result.place.x + result.place.width <= result.pixels.width() &&
                result.place.y + result.place.height <= result.pixels.height(),
            "a crop outside of what was decoded");
    });
    return result;
  }

  // A part is that of the whole image, and as sound. Which parts, the file's bytes decide.
  void check_crops(const Decoded& whole, image::Size size) {
    uint64_t hash = kFnvSeed;
    for (const uint8_t byte : bytes_) hash = fnv1a(hash, byte);
    const auto below = [&](int most) {
      hash = fnv1a(hash, uint8_t{1});
      return static_cast<int>((hash >> 20) % static_cast<uint64_t>(most));
    };
    image::Rect crop{.x = below(size.width), .y = below(size.height)};
    crop.width = 1 + below(size.width - crop.x);
    crop.height = 1 + below(size.height - crop.y);
    const Decoded part = decoded({}, crop);
    check(part.sound, "a part is refused of an image that is decoded");
    const size_t row = static_cast<size_t>(crop.width) * 4;
    for (int y = 0; y < crop.height; ++y) {
      const uint8_t* const of_whole = whole.pixels.at(whole.place.x + crop.x, whole.place.y + crop.y + y);
      const uint8_t* const of_part = part.pixels.at(part.place.x, part.place.y + y);
      for (size_t i = 0; i < row; ++i) {
        if (i % 4 != 3) check(of_whole[i] == of_part[i], "a part with other pixels than the whole image");
      }
    }
  }

  image::Format format_;
  const std::string name_ = "folder/a picture";
  std::span<const uint8_t> bytes_;
  image::Decoder decoder_;
  std::vector<uint32_t> values_;
};

}  // namespace lockstep::fuzz
