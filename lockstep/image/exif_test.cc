#include "lockstep/image/exif.h"

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/image/exif_block.h"

namespace lockstep::image {
namespace {

std::vector<uint8_t> block(int orientation) {
  std::vector<uint8_t> bytes(kExifBlockBytes);
  write_exif_block(orientation, bytes.data());
  return bytes;
}

TEST(Exif, ReadsTheOrientationInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(exif_orientation(block(orientation)), orientation);
  // Little-endian, two entries, the second one is the orientation as a LONG.
  const std::vector<uint8_t> little = {'I', 'I', 42, 0, 8, 0,    0,    0, 2, 0, 0x0f, 0x01, 2, 0, 1, 0, 0,
                                       0,   0,   0,  0, 0, 0x12, 0x01, 4, 0, 1, 0,    0,    0, 3, 0, 0, 0};
  EXPECT_EQ(exif_orientation(little), 3);
}

TEST(Exif, WhatIsDamagedHasNoOrientation) {
  EXPECT_EQ(exif_orientation({}), 0);
  EXPECT_EQ(exif_orientation(block(9)), 0);
  for (size_t i = 0; i < 20; ++i) {
    auto bytes = block(6);
    bytes.resize(i);
    EXPECT_EQ(exif_orientation(bytes), 0) << i;
  }
  for (size_t i = 0; i < kExifBlockBytes; ++i) {
    auto bytes = block(6);
    bytes[i] = 0xff;
    const int orientation = exif_orientation(bytes);
    EXPECT_TRUE(orientation >= 0 && orientation <= 8) << i;
  }
}

TEST(Exif, SegmentsAreWalkedToTheFirstScan) {
  std::vector<uint8_t> jpeg = {0xff, 0xd8, 0xff, 0xe0, 0,   4,   'J', 'F', 0xff, 0xff,
                               0xe1, 0,    9,    'E',  'x', 'i', 'f', 0,   0,    7};
  jpeg.insert(jpeg.end(), {0xff, 0xda, 0, 2, 0});
  EXPECT_EQ(jpeg_segments(jpeg).exif.size(), 1u);
  EXPECT_EQ(jpeg_segments(jpeg).exif[0], 7);
  EXPECT_EQ(jpeg_segments(jpeg).end, 20u);
  auto with_more = jpeg;
  with_more.insert(with_more.begin() + 8, {7, 0xff, 0, 0xff, 0xd0, 8});  // as libjpeg, over stray bytes and a restart
  EXPECT_EQ(jpeg_segments(with_more).exif.size(), 1u);
  EXPECT_EQ(jpeg_segments(with_more).end, 26u);
  for (size_t length = 0; length < jpeg.size(); ++length) jpeg_segments(std::span(jpeg).first(length));
  jpeg[5] = 1;  // a length that does not even count itself
  EXPECT_TRUE(jpeg_segments(jpeg).exif.empty());
  EXPECT_EQ(jpeg_segments(jpeg).end, 2u);
}

}  // namespace
}  // namespace lockstep::image
