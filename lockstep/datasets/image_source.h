// Encoded images and their classes, wherever they lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/datasets/files/listing.h"
#include "lockstep/image/decoder.h"

namespace lockstep::datasets {

// An image as it is stored.
struct Encoded {
  std::span<const uint8_t> bytes;
  std::optional<image::RawLayout> raw = {};  // of pixels without a format
};

// Images with one class each, numbered from 0. Immutable; any thread.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  // Returns an image's bytes, which lie in `memory`, or in the source itself. Throws DataError that names the image
  // where it is missing or damaged, IoError where the machine failed.
  virtual Encoded read(int64_t index, std::vector<uint8_t>& memory) const = 0;
  virtual int64_t class_of(int64_t index) const = 0;
  virtual std::string name_of(int64_t index) const = 0;  // for errors: "photos/cats/1.jpg"
  virtual std::vector<std::string> class_names() const = 0;
  virtual std::string fingerprint() const = 0;
  virtual std::string text() const = 0;  // "250 images of 12 classes in photos"
  virtual Listing listing() const { return {}; }
  virtual void will_need(std::span<const int64_t> /*indices*/) const {}
};

}  // namespace lockstep::datasets
