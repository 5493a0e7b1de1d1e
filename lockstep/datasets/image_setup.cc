#include "lockstep/datasets/image_setup.h"

#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"

namespace lockstep::datasets {

image::DecodeOptions turned_by(std::optional<Exif> exif) {
  image::DecodeOptions options{.exif = exif != Exif::kOff};
  if (exif == Exif::kBoth) options.mask_turn = image::MaskTurn::kAsImage;
  if (exif == Exif::kImage) options.mask_turn = image::MaskTurn::kNone;
  return options;
}

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

at::Tensor byte_table(const ImageSetup& setup) {
  if (setup.dtype == at::kByte) {
    throw ConfigError(
        "images as uint8 that aren't normalised have no table: as_bytes goes with the type of the numbers");
  }
  const image::NormalizeTable table(setup.normalize, pixel_type(setup.dtype));
  at::Tensor entries = at::empty({setup.decode.channels, 256}, at::TensorOptions(setup.dtype));
  table.entries(setup.decode.channels, entries.mutable_data_ptr());
  return entries;
}

std::string text_of(const ImageSetup& setup, bool augmented) {
  if (!augmented) return setup.evaluation->text();
  return cat(setup.augment, setup.augment.empty() ? "" : ": ", setup.train->text());
}

std::string transforms_of(const ImageSetup& setup, bool augmented) {
  std::string text = cat((augmented ? setup.train : setup.evaluation)->text(), "; ", c10::toString(setup.dtype));
  if (setup.dtype != at::kByte) {
    const auto& [mean, std] = setup.normalize;
    text += cat(", mean ", mean[0], ' ', mean[1], ' ', mean[2], ", std ", std[0], ' ', std[1], ' ', std[2]);
  }
  const image::DecodeOptions& decode = setup.decode;
  if (decode.channels < 3) text += ", grey";
  if (image::has_alpha(decode.channels)) text += ", alpha";
  if (!decode.exif) text += ", exif off";
  if (decode.mask_turn == image::MaskTurn::kAsImage) text += ", exif both";
  if (decode.mask_turn == image::MaskTurn::kNone) text += ", exif image";
  if (decode.fast) text += ", fast decode";
  if (setup.encoded && augmented) text += ", decoded where they are used";
  return text;
}

}  // namespace lockstep::datasets
