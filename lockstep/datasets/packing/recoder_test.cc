#include "lockstep/datasets/packing/recoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/packing/testing/pack_data.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/testing/encode_npy.h"

namespace lockstep::datasets {
namespace {

using image::Pixels;
using image::testing_support::decoded;
using image::testing_support::difference;
using testing::data_error;
using ::testing::HasSubstr;
using testing::TempDir;

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

class RecoderTest : public ::testing::Test {
 protected:
  // The packed form of an image in a class folder.
  PackedSample packed(const std::string& name, const std::string& content, const PackOptions& options) {
    const TempDir dir;
    testing::write_deep(dir, "cats/" + name, content);
    return Recoder(*class_folders(dir.path()), options)(0);
  }
};

// What training would make of the file itself.
Pixels shrunk(const std::string& file, int size) {
  image::Decoder decoder;
  const std::vector<uint8_t> bytes = bytes_of(file);
  decoder.open(bytes, "file");
  image::Scratch scratch;
  image::Sample sample;
  image::Pipeline::Times times;
  image::Pipeline({image::resize_shorter(size)}).run(decoder, nullptr, nullptr, {}, scratch, sample, times);
  return std::move(sample.image);
}

TEST_F(RecoderTest, ResizesAsTrainingDoes) {
  const std::string file = testing::png({80, 60}, 3);
  const PackedSample png = packed("1.png", file, {.size = 20});
  EXPECT_EQ(png.head.codec, Codec::kPng);
  EXPECT_EQ(png.head.width, 26);
  EXPECT_EQ(png.head.height, 20);
  EXPECT_EQ(difference(decoded(png.image), shrunk(file, 20)), 0);
  const PackedSample raw = packed("1.png", file, {.size = 20, .codec = PackCodec::kRaw});
  EXPECT_EQ(raw.image.size(), 26u * 20 * 3);
  EXPECT_EQ(raw.image[0], decoded(png.image).at(0, 0)[0]);
  const PackedSample jpeg = packed("1.jpg", testing::jpeg({80, 60}), {.size = 20});
  EXPECT_EQ(jpeg.head.codec, Codec::kJpeg);
  EXPECT_LT(jpeg.image.size(), packed("1.jpg", testing::jpeg({80, 60}), {.size = 20, .quality = 99}).image.size());
}

TEST_F(RecoderTest, KeepsWhatNeedNotBeEncodedAnew) {
  const std::string jpeg = testing::jpeg({80, 60}), png = testing::png({80, 60});
  for (const PackOptions& options : {PackOptions{}, PackOptions{.size = 60}, PackOptions{.codec = PackCodec::kJpeg}}) {
    EXPECT_EQ(packed("1.jpg", jpeg, options).image, bytes_of(jpeg)) << "images are not enlarged, and not lost to";
  }
  EXPECT_EQ(packed("1.png", png, {.codec = PackCodec::kJpeg}).head.codec, Codec::kJpeg);
  EXPECT_LT(packed("1.jpg", jpeg, {.codec = PackCodec::kJpeg, .quality = 20}).image.size(), jpeg.size());
}

TEST_F(RecoderTest, TurnsWhatItEncodesAnew) {
  const auto picture = image::testing_support::picture({80, 60});
  const std::string turned = testing::text_of(image::encode_png(picture, {.orientation = 6}));
  const PackedSample kept = packed("1.png", turned, {});
  EXPECT_EQ(kept.image, bytes_of(turned));
  EXPECT_EQ(kept.head.width, 60) << "upright";
  const PackedSample raw = packed("1.png", turned, {.codec = PackCodec::kRaw});
  EXPECT_EQ(raw.head.width, 60);
  EXPECT_EQ(raw.image[0], picture.at(0, 59)[0]);
  EXPECT_EQ(packed("1.png", turned, {.codec = PackCodec::kRaw, .exif = Exif::kOff}).head.width, 80);
}

// The orientation that training finds.
int orientation_of(const std::vector<uint8_t>& bytes) {
  image::Decoder decoder;
  return decoder.open(bytes, "packed").orientation;
}

// Else training would turn it, and not those that were resized.
TEST_F(RecoderTest, LeavesNoOrientationWhereNoneIsApplied) {
  const auto picture = image::testing_support::picture({80, 60});
  const PackOptions options{.size = 64, .exif = Exif::kOff};
  const std::string png = testing::text_of(image::encode_png(picture, {.orientation = 6}));
  const PackedSample lossless = packed("1.png", png, options);
  EXPECT_EQ(lossless.head.codec, Codec::kPng);
  EXPECT_EQ(orientation_of(lossless.image), 1);
  EXPECT_EQ(difference(decoded(lossless.image), picture), 0) << "as it is stored";
  EXPECT_EQ(lossless.head.width, 80);
  const std::string jpeg = testing::text_of(image::encode_jpeg(picture, {.orientation = 8}));
  const PackedSample usual = packed("1.jpg", jpeg, options);
  EXPECT_EQ(usual.head.codec, Codec::kJpeg);
  EXPECT_EQ(orientation_of(usual.image), 1);
  EXPECT_EQ(decoded(usual.image).width(), 80);
  const PackedSample worse = packed("1.jpg", jpeg, {.size = 64, .quality = 20, .exif = Exif::kOff});
  EXPECT_LT(worse.image.size(), usual.image.size());
  for (const int upright : {0, 1}) {
    const auto kept = image::encode_jpeg(picture, {.orientation = upright});
    EXPECT_EQ(packed("1.jpg", testing::text_of(kept), options).image, kept);
  }
  EXPECT_EQ(orientation_of(packed("1.jpg", jpeg, {.size = 64}).image), 8) << "training turns what is kept";
}

TEST_F(RecoderTest, GreyStaysGrey) {
  const std::string grey = testing::jpeg({80, 60}, 1, 1);
  EXPECT_EQ(packed("1.jpg", grey, {.codec = PackCodec::kRaw}).image.size(), 80u * 60);
  EXPECT_EQ(decoded(packed("1.jpg", grey, {.size = 20}).image, {.channels = 1}).channels(), 1);
}

// A mask of the values `values`, as npy, beside a PNG.
PackedSample packed_pair(const std::vector<uint32_t>& values, image::Size size, const PackOptions& options) {
  const TempDir dir;
  testing::write_deep(dir, "imgs/1.png", testing::png(size));
  std::vector<uint8_t> elements;
  for (const uint32_t value : values) append(elements, value);
  testing::write_deep(dir, "masks/1.npy",
                      testing::text_of(image::testing_support::encode_npy(
                          "'<u4'", cat("(", size.height, ", ", size.width, ")"), elements)));
  return Recoder(*pair_files(find_pairs(dir.path())), options)(0);
}

std::vector<uint32_t> striped(image::Size size, const std::vector<uint32_t>& values) {
  std::vector<uint32_t> pixels;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) pixels.push_back(values[static_cast<size_t>(x / 4) % values.size()]);
  }
  return pixels;
}

TEST(RecoderOfPairs, ResizedMasksKeepTheirValues) {
  constexpr image::Size kSize{40, 24};
  for (const uint32_t large : {255u, image::mask_value(255, 0, 7), image::mask_value(0, 1, 0)}) {
    const PackedSample sample = packed_pair(striped(kSize, {0, 9, large}), kSize, {.size = 12});
    const auto values = image::testing_support::values_of(sample.mask);
    ASSERT_EQ(values.size(), 20u * 12);
    EXPECT_EQ(std::vector<uint32_t>(values.begin(), values.begin() + 6),
              (std::vector<uint32_t>{0, 0, 9, 9, large, large}));
    EXPECT_EQ(sample.mask_values, (std::vector<uint32_t>{0, 9, large}));
    EXPECT_EQ(sample.head.width, 20);
  }
}

TEST(RecoderOfPairs, KeptMasksKeepTheirBytes) {
  constexpr image::Size kSize{40, 24};
  const auto values = striped(kSize, {0, 1u << 30});
  const PackedSample sample = packed_pair(values, kSize, {});
  EXPECT_EQ(image::testing_support::values_of(sample.mask), values);
  for (const uint32_t large : {256u, 1u << 30, 0xff070707u}) {
    EXPECT_THAT(data_error([&] {
                  packed_pair(striped(kSize, {0, large}), kSize, {.size = 12});
                }),
                HasSubstr("levels up to 255 or of colours"));
  }
}

TEST(RecoderOfPairs, MasksAreTurnedWithTheirImages) {
  const TempDir dir;
  constexpr image::Size kSize{40, 24};
  testing::write_deep(dir, "imgs/1.png",
                      testing::text_of(image::encode_png(image::testing_support::picture(kSize), {.orientation = 6})));
  testing::write_deep(dir, "masks/1.png", testing::text_of(image::encode_png(testing::bands(kSize))));
  const auto pairs = pair_files(find_pairs(dir.path()));
  const PackOptions options{.codec = PackCodec::kRaw};
  const PackedSample sample = Recoder(*pairs, options)(0);
  image::Decoder mask;
  EXPECT_EQ(mask.open(sample.mask, "mask").upright(), (image::Size{24, 40}));
  EXPECT_FALSE(mask.info().exif_orientation);
}

// A square mask doesn't tell how it lies.
TEST(RecoderOfPairs, MasksAreTurnedAsTheOptionSays) {
  const TempDir dir;
  constexpr image::Size kSize{24, 24};
  testing::write_deep(dir, "imgs/1.png",
                      testing::text_of(image::encode_png(image::testing_support::picture(kSize), {.orientation = 6})));
  testing::write_deep(dir, "masks/1.png", testing::text_of(image::encode_png(testing::bands(kSize))));
  const auto pairs = pair_files(find_pairs(dir.path()));
  const auto packed_mask = [&](Exif exif) {
    return image::testing_support::values_of(
        Recoder(*pairs, PackOptions{.codec = PackCodec::kRaw, .exif = exif})(0).mask);
  };
  EXPECT_THAT(data_error([&] { packed_mask(Exif::kOn); }), HasSubstr("--exif both"));
  const auto as_stored = packed_mask(Exif::kOff);
  EXPECT_EQ(packed_mask(Exif::kImage), as_stored);
  EXPECT_NE(packed_mask(Exif::kBoth), as_stored);
  EXPECT_EQ(image::testing_support::values_of(Recoder(*pairs, {})(0).mask), as_stored) << "kept, whatever it is";
}

// A small square pair that --size 64 keeps.
PackedSample kept_pair(int of_image, int of_mask, Exif exif) {
  const TempDir dir;
  constexpr image::Size kSize{24, 24};
  const auto picture = image::testing_support::picture(kSize);
  testing::write_deep(dir, "imgs/1.png", testing::text_of(image::encode_png(picture, {.orientation = of_image})));
  testing::write_deep(dir, "masks/1.png",
                      testing::text_of(image::encode_png(testing::bands(kSize), {.orientation = of_mask})));
  const PackOptions options{.size = 64, .exif = exif};
  PackedSample sample = Recoder(*pair_files(find_pairs(dir.path())), options)(0);
  EXPECT_EQ(orientation_of(sample.image), orientation_of(sample.mask)) << "training needs no option";
  return sample;
}

TEST(RecoderOfPairs, KeptOnesNeedNoOptionAtTraining) {
  constexpr image::Size kSize{24, 24};
  const auto picture = image::testing_support::picture(kSize);
  const auto plain_image = image::encode_png(picture), plain_mask = image::encode_png(testing::bands(kSize));
  const auto turned = decoded(image::encode_png(picture, {.orientation = 6}));
  const auto turned_mask = decoded(image::encode_png(testing::bands(kSize), {.orientation = 6}), {.channels = 1});
  const auto mask_of = [](const PackedSample& sample) { return decoded(sample.mask, {.channels = 1}); };

  const PackedSample both = kept_pair(6, 0, Exif::kBoth);
  EXPECT_EQ(difference(decoded(both.image), turned), 0);
  EXPECT_EQ(difference(mask_of(both), turned_mask), 0);
  const PackedSample image = kept_pair(6, 0, Exif::kImage);
  EXPECT_EQ(difference(decoded(image.image), turned), 0);
  EXPECT_EQ(difference(mask_of(image), testing::bands(kSize)), 0);
  const PackedSample off = kept_pair(6, 3, Exif::kOff);
  EXPECT_EQ(difference(decoded(off.image), picture), 0);
  EXPECT_EQ(difference(mask_of(off), testing::bands(kSize)), 0);

  EXPECT_EQ(kept_pair(0, 3, Exif::kOff).image, plain_image) << "the mask alone has an orientation";
  for (const Exif exif : {Exif::kOff, Exif::kBoth, Exif::kImage}) {
    EXPECT_EQ(kept_pair(0, 0, exif).image, plain_image);
    EXPECT_EQ(kept_pair(0, 0, exif).mask, plain_mask);
  }
}

TEST(RecoderOfPairs, MasksOfAnotherSizeAreNamed) {
  const TempDir dir;
  testing::write_deep(dir, "imgs/1.png", testing::png({40, 30}));
  testing::write_deep(dir, "masks/1.png", testing::png({40, 31}, 1, 1));
  const auto pairs = pair_files(find_pairs(dir.path()));
  const PackOptions options;
  EXPECT_THAT(data_error([&] { Recoder(*pairs, options)(0); }), HasSubstr("masks/1.png: a mask of 40 x 31 pixels"));
}

TEST(Packing, IsDescribed) {
  EXPECT_EQ(packing_of({}), "as they are");
  EXPECT_EQ(packing_of({.size = 256}), "at most 256 pixels");
  EXPECT_EQ(packing_of({.size = 256, .codec = PackCodec::kJpeg}), "at most 256 pixels, as jpeg, quality 90");
  EXPECT_EQ(packing_of({.codec = PackCodec::kPng, .exif = Exif::kOff}), "as png, turned as they were stored");
  EXPECT_EQ(packing_of({.size = 9, .exif = Exif::kBoth}), "at most 9 pixels, masks turned as their images");
  EXPECT_EQ(packing_of({.size = 9, .exif = Exif::kImage}), "at most 9 pixels, images turned without their masks");
}

}  // namespace
}  // namespace lockstep::datasets
