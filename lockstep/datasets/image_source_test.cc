#include "lockstep/datasets/image_source.h"

#include <gtest/gtest.h>

#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets {
namespace {

// One image, in whichever form.
struct OneImage final : ImageSource {
  explicit OneImage(std::string bytes) : bytes(std::move(bytes)) {}
  int64_t size() const override { return 1; }
  Encoded read(int64_t, std::vector<uint8_t>& memory) const override {
    memory.assign(bytes.begin(), bytes.end());
    return {memory};
  }
  std::string name_of(int64_t) const override { return "photos/1"; }
  std::string fingerprint() const override { return "one"; }
  std::string text() const override { return "one image"; }
  std::string bytes;
};

TEST(ImageSource, IsOpenedByItsFormatOrAsRawPixels) {
  image::Decoder decoder;
  std::vector<uint8_t> memory;
  const OneImage png(testing::png({20, 10})), raw(std::string(6, 'x')), torn("torn");
  EXPECT_EQ(open_encoded(decoder, png.read(0, memory), "photos/1").upright(), (image::Size{20, 10}));
  Encoded pixels = raw.read(0, memory);
  pixels.raw = {.size = {2, 1}};
  EXPECT_EQ(open_encoded(decoder, pixels, "photos/1").upright(), (image::Size{2, 1}));
  const std::string error = testing::data_error([&] { open_encoded(decoder, torn.read(0, memory), torn.name_of(0)); });
  EXPECT_EQ(error.find("photos/1: "), 0u) << error;
}

TEST(ImageSource, WithoutMasksHasNoneToRead) {
  const OneImage image("");
  std::vector<uint8_t> memory;
  PairMemory both;
  EXPECT_FALSE(image.has_masks());
  EXPECT_THROW(image.read_mask(0, memory), BugError);
  EXPECT_THROW(image.read_pair(0, both), BugError);
  EXPECT_EQ(image.short_name_of(0), "photos/1");
  EXPECT_EQ(image.mask_name_of(0), "photos/1");
}

}  // namespace
}  // namespace lockstep::datasets
