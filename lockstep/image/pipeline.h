// The transforms of a data set, planned before an image is decoded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/draw.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/label_map.h"
#include "lockstep/image/transform.h"

namespace lockstep::image {

// Immutable; any thread, each with a decoder, scratch and sample of its own.
class Pipeline {
 public:
  // Throws ConfigError if two transforms would draw the same random numbers.
  explicit Pipeline(std::vector<std::shared_ptr<const Transform>> transforms = {});
  std::string text() const;  // "RandomResizedCrop 224, flip 0.5"; "as it is" without transforms

  // The text of the first transform that has no plan for a usual photograph, which it changes as pixels; else empty.
  std::string unplanned() const;

  // The whole plan of an upright image of this size; nothing where a transform changes its pixels. Throws DataError
  // without a name, for images that a transform refuses.
  std::optional<Geometry> plan(Size image, const Draw& draw) const;

  struct Times {
    int64_t decode_ns = 0, transform_ns = 0;
  };

  // Plans for `draw`, decodes what is needed of the opened image, and of its mask if there is one, and applies the
  // rest. Without `classes` a mask is numbered by its own values, which out.mask_values then has. Adds to `times`.
  // Throws DataError and IoError that name the image or the mask. Whether a mask is turned as its image, the options
  // decide with which it was opened.
  void run(Decoder& image, Decoder* mask, const LabelMap* classes, const Draw& draw, Scratch& scratch, Sample& out,
           Times& times) const;

 private:
  size_t plan_first(Geometry& geometry, const Draw& draw) const;

  std::vector<std::shared_ptr<const Transform>> transforms_;
  std::vector<uint32_t> slots_;  // of each
};

}  // namespace lockstep::image
