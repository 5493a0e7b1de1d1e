// For tests: JPEGs that come encoded, and every fifth one as a PNG's pixels; or all as the pixels that the host makes.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/device/picture_row.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/flips.h"
#include "lockstep/image/normalize.h"
#include "lockstep/image/pipeline.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::train::testing_support {

class EncodedImages final : public data::Dataset {
 public:
  static constexpr image::Size kSize{24, 20};

  explicit EncodedImages(int64_t size, bool encoded = true) : size_(size), encoded_(encoded) {
    for (uint64_t i = 0; i < kFiles; ++i) {
      const int add = static_cast<int>(i);
      const auto pixels = image::testing_support::picture({40 + add, 35}, 3, i);
      files_.push_back(i == 0 ? image::encode_png(pixels)
                              : image::encode_jpeg(pixels, {.orientation = 1 + static_cast<int>(i)}));
    }
    table_ = at::arange(0, 768, at::kFloat).view({3, 256});
  }

  int64_t size() const override { return size_; }
  std::vector<data::Field> fields() const override {
    return {{.name = "data",
             .dtype = at::kByte,
             .shape = {3, kSize.height, kSize.width},
             .channels_last = true,
             .table = table_,
             .encoded = encoded_ ? image::row_bytes(kSize) : 0},
            {.name = "target", .dtype = at::kLong, .shape = {}}};
  }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    *rows[1].mutable_data_ptr<int64_t>() = index % 3;
    const auto& file = files_[static_cast<size_t>(index) % kFiles];
    image::Decoder decoder;
    const image::ImageInfo& info = decoder.open(file, name_of(index));
    const std::span<uint8_t> row(rows[0].mutable_data_ptr<uint8_t>(), static_cast<size_t>(rows[0].nbytes()));
    if (!encoded_) return store(decoder, draw, row);
    const std::string why = image::kept_here(info);
    if (!why.empty()) {
      store(decoder, draw, image::store_pixels(why, name_of(index), 3 * kSize.width * kSize.height, row));
    } else {
      image::store_jpeg({info.stored, info.orientation, *pipeline_.plan(info.upright(), draw)}, file, name_of(index),
                        row);
    }
  }
  std::string fingerprint() const override { return "encoded images"; }
  std::string description() const override { return "encoded images"; }
  int64_t classes() const override { return 3; }

 private:
  static constexpr uint64_t kFiles = 5;

  void store(image::Decoder& decoder, const Draw& draw, std::span<uint8_t> to) const {
    image::Scratch scratch;
    image::Sample sample;
    image::Pipeline::Times times;
    pipeline_.run(decoder, nullptr, nullptr, draw, scratch, sample, times);
    image::NormalizeTable({}, image::Type::kU8).store(sample.image, to.data(), /*channels_last=*/true);
  }

  int64_t size_;
  bool encoded_;
  image::Pipeline pipeline_{{image::random_resized_crop(kSize), image::flip_x()}};
  std::vector<std::vector<uint8_t>> files_;
  at::Tensor table_;
};

}  // namespace lockstep::train::testing_support
