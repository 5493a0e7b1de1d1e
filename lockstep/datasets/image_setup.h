// How the images of a data set become tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "lockstep/datasets/options/image_options.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/normalize.h"
#include "lockstep/image/pipeline.h"

namespace lockstep::datasets {

struct ImageSetup {
  std::shared_ptr<const image::Pipeline> train, evaluation;
  std::string augment;                   // what the header calls the training one: "standard"
  image::Size result;                    // of both, but for training images if `crop` is set
  std::optional<image::Size> crop = {};  // the size of training images, as parts of such results
  image::Normalize normalize = {};
  image::DecodeOptions decode = {};   // its channels are the result's
  at::ScalarType dtype = at::kFloat;  // uint8 (not normalised), float32, bfloat16 or float16
  bool channels_last = false;         // how a [C, H, W] lies in memory
  // Images come as uint8, beside the table (data::Field::table) that makes the same numbers of `dtype` of them where
  // they are used.
  bool as_bytes = false;
  // Besides, training images come encoded, and their plans with them, to be decoded where they are used
  // (data::Field::encoded). Goes with as_bytes.
  bool encoded = false;

  image::Size size(bool augmented) const { return augmented ? crop.value_or(result) : result; }
};

// How images, and masks beside them, are turned while they are decoded. Unset: as Exif::kOn.
image::DecodeOptions turned_by(std::optional<Exif> exif);

// The type of pixels for a tensor's. Throws ConfigError for types that images don't come in.
image::Type pixel_type(at::ScalarType dtype);

// The table of a set-up with as_bytes, [channels, 256] of setup.dtype. Throws ConfigError if that is uint8.
at::Tensor byte_table(const ImageSetup& setup);

// "standard: RandomResizedCrop 224, flip 0.5" for training, "Resize 256, CenterCrop 224" for evaluation.
std::string text_of(const ImageSetup& setup, bool augmented);

// All of the set-up that an image's values depend on: "CenterCrop 224; Float, mean 0.5 0.5 0.5, std 1 1 1".
std::string transforms_of(const ImageSetup& setup, bool augmented);

}  // namespace lockstep::datasets
