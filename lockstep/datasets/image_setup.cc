#include "lockstep/datasets/image_setup.h"

#include "lockstep/base/error.h"

namespace lockstep::datasets {

image::Type pixel_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return image::Type::kU8;
    case at::kFloat:
      return image::Type::kF32;
    case at::kBFloat16:
      return image::Type::kBf16;
    case at::kHalf:
      return image::Type::kF16;
    default:
      throw ConfigError("images as ", c10::toString(dtype), ": they come as uint8, float32, bfloat16 or float16");
  }
}

std::string text_of(const ImageSetup& setup, bool augmented) {
  if (!augmented) return setup.evaluation->text();
  return cat(setup.augment, setup.augment.empty() ? "" : ": ", setup.train->text());
}

}  // namespace lockstep::datasets
