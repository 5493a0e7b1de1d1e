#include "lockstep/image/device/batch_decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/flips.h"
#include "lockstep/image/normalize.h"
#include "lockstep/image/pipeline.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing_support::picture;
using Transforms = std::vector<std::shared_ptr<const Transform>>;
using Files = std::vector<std::vector<uint8_t>>;

// What a data set does with a file, for one batch.
class Batch {
 public:
  Batch(const Transforms& transforms, Size result, bool channels_last)
      : pipeline_(transforms), result_(result), channels_last_(channels_last) {}

  void add(const std::vector<uint8_t>& file, const Draw& draw) {
    Decoder decoder;
    Scratch scratch;
    Sample sample;
    Pipeline::Times times;
    decoder.open(file, "picture");
    const ImageInfo info = decoder.info();
    pipeline_.run(decoder, nullptr, nullptr, draw, scratch, sample, times);
    at::Tensor image = empty(1);
    const NormalizeTable table({}, Type::kU8);
    table.store(sample.image, image.mutable_data_ptr(), channels_last_);
    images_.push_back(image);

    at::Tensor row = at::empty({row_bytes(result_)}, at::kByte);
    const std::span<uint8_t> bytes(row.mutable_data_ptr<uint8_t>(), static_cast<size_t>(row.numel()));
    std::string why = kept_here(info);
    if (why.empty()) {
      const auto plan = pipeline_.plan(info.upright(), draw);
      ASSERT_TRUE(plan.has_value());
      why = store_jpeg({info.stored, info.orientation, *plan}, file, "picture", bytes);
    }
    if (!why.empty()) {
      table.store(sample.image, store_pixels(why, "picture", static_cast<size_t>(image.numel()), bytes).data(),
                  channels_last_);
    }
    rows_.push_back(row);
  }
  at::Tensor rows() const { return at::stack(rows_); }
  at::Tensor images() const { return at::cat(images_); }
  at::Tensor decoded_by(BatchDecoder& decoder, DecodedCounts& counts) const {
    return decoder.decode(rows(), result_, channels_last_, counts);
  }

 private:
  at::Tensor empty(int64_t pictures) const {
    return at::empty({pictures, 3, result_.height, result_.width}, at::TensorOptions(at::kByte),
                     channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  }

  Pipeline pipeline_;
  Size result_;
  bool channels_last_;
  std::vector<at::Tensor> rows_, images_;
};

// JPEGs of both kinds of channels, all orientations, sizes above and below the results'.
Files all_files() {
  Files files;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto seed = static_cast<uint64_t>(orientation);
    files.push_back(encode_jpeg(picture({130 - orientation, 90}, 3, seed), {.orientation = orientation}));
    files.push_back(encode_jpeg(picture({33, 40 + orientation}, 1, seed), {.orientation = orientation}));
  }
  files.push_back(encode_jpeg(picture({700, 500})));
  files.push_back(encode_jpeg(picture({1, 1})));
  return files;
}

// Decodes all but what it refuses.
struct Choosy final : JpegDecoder {
  explicit Choosy(std::set<int64_t> places) : refused(std::move(places)) {}
  std::vector<int64_t> decode(std::span<const PlannedJpeg> pictures, const at::Tensor& images) override {
    std::vector<PlannedJpeg> taken;
    std::vector<int64_t> not_taken;
    for (const PlannedJpeg& each : pictures) {
      if (refused.count(each.place) > 0) {
        images.select(0, each.place).fill_(77);
        not_taken.push_back(each.place);
      } else {
        taken.push_back(each);
      }
    }
    host.decode(taken, images);
    return not_taken;
  }
  std::string text() const override { return "choosy"; }
  int64_t device_bytes() const override { return 0; }
  std::set<int64_t> refused;
  HostDecoder host;
};

TEST(BatchDecoder, TheDevicesArithmeticHasTheHostsBits) {
  const Files files = all_files();
  const Size size{32, 24};
  const Transforms lists[] = {{random_resized_crop(size), flip_x()},
                              {random_resized_crop(size, {.scale_low = 0.01, .scale_high = 0.02}), flip_y()},
                              {resize_shorter(40), center_crop(size)},
                              {center_crop(size), flip_x(1), flip_y(1)},
                              {random_crop(size, 4), flip_x()},
                              {resize_to({300, 10}), center_crop(size), flip_x()},
                              {resize_to({32, 11}), center_crop(size), flip_y(1)},
                              {resize_to(size)}};
  for (const Transforms& list : lists) {
    for (const bool channels_last : {false, true}) {
      Batch batch(list, size, channels_last);
      for (uint64_t i = 0; i < files.size(); ++i) batch.add(files[i], {.seed = 3, .epoch = 1, .number = i});
      BatchDecoder decoder(std::make_shared<HostDecoder>(), at::kCPU);
      DecodedCounts counts;
      const at::Tensor images = batch.decoded_by(decoder, counts);
      EXPECT_TRUE(at::equal(images, batch.images())) << Pipeline(list).text();
      EXPECT_EQ(images.is_contiguous(at::MemoryFormat::ChannelsLast), channels_last);
      EXPECT_EQ(counts.on_device, std::ssize(files));
      EXPECT_EQ(counts.host(), 0);
    }
  }
}

// Whatever a device decodes, the batch is the host's.
TEST(BatchDecoder, WhatTheDeviceDoesNotTakeTheHostDecodes) {
  for (const bool channels_last : {false, true}) {
    Batch batch({random_resized_crop({32, 24}), flip_x()}, {32, 24}, channels_last);
    batch.add(encode_png(picture({60, 50})), {.number = 1});
    for (uint64_t i = 0; i < 4; ++i) batch.add(encode_jpeg(picture({60, 50}, 3, i)), {.number = i});
    batch.add(encode_png(picture({50, 60})), {.number = 2});
    BatchDecoder decoder(std::make_shared<Choosy>(std::set<int64_t>{2, 4}), at::kCPU);
    DecodedCounts counts;
    EXPECT_TRUE(at::equal(batch.decoded_by(decoder, counts), batch.images()));
    EXPECT_EQ(counts.on_device, 2);
    EXPECT_THAT(counts.on_host, ElementsAre(Pair("JPEG that choosy refuses", 2), Pair("PNG", 2)));
    EXPECT_EQ(counts.text(), "2 on the device, 4 on the host (2 JPEG that choosy refuses, 2 PNG)");
  }
}

TEST(BatchDecoder, AnEmptyLaneIsAnEmptyBatch) {
  BatchDecoder decoder(std::make_shared<HostDecoder>(), at::kCPU);
  DecodedCounts counts;
  const at::Tensor images = decoder.decode(at::empty({0, row_bytes({32, 24})}, at::kByte), {32, 24}, true, counts);
  EXPECT_EQ(images.sizes(), at::IntArrayRef({0, 3, 24, 32}));
}

TEST(BatchDecoder, ADamagedPictureIsNamed) {
  Batch batch({resize_to({32, 24})}, {32, 24}, false);
  batch.add(encode_jpeg(picture({60, 50})), {});
  at::Tensor rows = batch.rows();
  const auto length = static_cast<size_t>(rows.size(1));
  const PictureRow row = read_row({rows.const_data_ptr<uint8_t>(), length});
  auto* const file = const_cast<uint8_t*>(row.file.data());
  file[0] = 0;  // no JPEG any more
  BatchDecoder decoder(std::make_shared<HostDecoder>(), at::kCPU);
  DecodedCounts counts;
  try {
    decoder.decode(rows, {32, 24}, false, counts);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("picture: "));
  }
}

TEST(DecodedCounts, AddsUpOverProcesses) {
  const DecodedCounts one{.on_device = 3, .on_host = {{"PNG", 2}}};
  const DecodedCounts two{.on_device = 4, .on_host = {{"CMYK JPEG", 1}, {"PNG", 1}}};
  DecodedCounts all;
  for (const DecodedCounts& each : {one, two, DecodedCounts()}) all += DecodedCounts::of(each.lines());
  EXPECT_EQ(all.text(), "7 on the device, 4 on the host (1 CMYK JPEG, 3 PNG)");
  EXPECT_EQ(DecodedCounts().text(), "0 on the device, 0 on the host");
}

}  // namespace
}  // namespace lockstep::image
