// Baseline JPEGs give the pixels, or the errors, that libjpeg alone gives.
#include "lockstep/image/jpeg_scan.h"

#include <gtest/gtest.h>

#include "lockstep/image/encode.h"
#include "lockstep/image/testing/odd_jpeg.h"
#include "lockstep/image/testing/pictures.h"
#include "lockstep/image/testing/plain_jpeg.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

// Reads a file with a scan, and counts the MCUs that it was asked for.
struct WithScan : PlainJpeg {
  explicit WithScan(const std::vector<uint8_t>& bytes) : PlainJpeg(bytes) {
    jpeg.client_data = this;
    takes = has_started && scan.start(jpeg, 0, jpeg.MCUs_per_row, [](j_decompress_ptr of, JBLOCKROW* blocks) {
      auto& self = *static_cast<WithScan*>(of->client_data);
      ++self.mcus;
      if (!self.scan.decode(blocks)) self.errors.fail("gave up");
      return static_cast<boolean>(TRUE);
    });
  }

  JpegScan scan;
  bool takes = false;
  int mcus = 0;
};

Pixels plainly(const std::vector<uint8_t>& bytes) {
  Pixels pixels;
  PlainJpeg plain(bytes);
  EXPECT_TRUE(plain.read(pixels)) << plain.errors.text;
  return pixels;
}

void expect_same(const std::vector<uint8_t>& bytes) {
  WithScan with(bytes);
  ASSERT_TRUE(with.takes);
  Pixels pixels;
  ASSERT_TRUE(with.read(pixels)) << with.errors.text;
  EXPECT_GT(with.mcus, 0);
  EXPECT_EQ(difference(pixels, plainly(bytes)), 0);
}

TEST(JpegScan, GivesLibjpegsPixelsForEachQuality) {
  for (const int quality : {1, 10, 50, 75, 90, 95, 100}) {
    for (const auto subsampling : {Subsampling::k444, Subsampling::k420, Subsampling::k422, Subsampling::k411}) {
      SCOPED_TRACE(quality);
      expect_same(encode_jpeg(picture({131, 93}), {.quality = quality, .subsampling = subsampling}));
    }
    expect_same(encode_jpeg(picture({60, 50}, 1), {.quality = quality}));
  }
}

TEST(JpegScan, TakesTablesOfAFilesOwn) {
  for (const int quality : {5, 40, 80, 98, 100}) {
    SCOPED_TRACE(quality);
    const auto bytes = encode_odd_jpeg(picture({200, 90}), {.name = "own", .optimized = true, .quality = quality});
    EXPECT_LT(bytes.size(), encode_odd_jpeg(picture({200, 90}), {.name = "usual", .quality = quality}).size());
    expect_same(bytes);
  }
}

TEST(JpegScan, ReadsLongFilesChunkByChunk) {
  const auto bytes = encode_jpeg(picture({700, 500}), {.quality = 100, .subsampling = Subsampling::k444});
  ASSERT_GT(bytes.size(), 20u * (16 << 10));
  expect_same(bytes);
}

TEST(JpegScan, FollowsRestartMarkers) {
  for (const int rows : {1, 2, 5}) {
    expect_same(encode_jpeg(picture({40, 400}), {.quality = 95, .restart_rows = rows}));
    expect_same(encode_jpeg(picture({300, 120}, 1), {.restart_rows = rows}));
  }
}

TEST(JpegScan, LeavesOtherKindsToLibjpeg) {
  EXPECT_FALSE(WithScan(encode_jpeg(picture({40, 30}), {.progressive = true})).takes);
  EXPECT_FALSE(WithScan(encode_jpeg(picture({40, 30}), {.interleaved = false})).takes);
  EXPECT_FALSE(WithScan(encode_odd_jpeg(picture({40, 30}), {.name = "arithmetic", .arithmetic = true})).takes);
}

// What becomes of a file: its pixels, or its error.
std::string outcome_of(const std::vector<uint8_t>& bytes, Decoder& decoder) {
  Pixels pixels;
  try {
    const Size size = decoder.open(bytes, "picture").upright();
    decoder.decode({0, 0, size.width, size.height}, size, pixels);
  } catch (const DataError& error) {
    return error.what();
  }
  return cat(hash_of(pixels));
}

std::string plain_outcome_of(const std::vector<uint8_t>& bytes) {
  Pixels pixels;
  PlainJpeg plain(bytes);
  if (plain.read(pixels)) return cat(hash_of(pixels));
  const unsigned row = plain.jpeg.output_scanline;
  const std::string where = row == 0 ? "" : cat(" at row ", row, " of ", plain.jpeg.image_height);
  return cat("picture: a damaged JPEG (", plain.errors.text, where, "); remove or replace the file");
}

TEST(JpegScan, DamagedFilesComeOutAsLibjpegAloneReadsThem) {
  RandomStream random(3, Purpose::kSynthetic, 0, 0);
  Decoder decoder;
  int refused = 0, read = 0;
  for (int round = 0; round < 3000; ++round) {
    const bool restarts = round % 3 == 0;
    auto bytes = encode_odd_jpeg(picture({64, 48}), {.name = "damaged", .optimized = round % 2 == 0, .quality = 60});
    if (restarts) bytes = encode_jpeg(picture({64, 48}), {.quality = 60, .restart_rows = 1});
    const std::vector<uint8_t> marker = {0xff, 0xda};
    const auto scan = std::search(bytes.begin(), bytes.end(), marker.begin(), marker.end()) - bytes.begin() + 14;
    const auto length = static_cast<uint32_t>(std::ssize(bytes) - 2 - scan);
    for (uint32_t i = 0; i < 1 + random.below(3); ++i) {
      const auto at = static_cast<size_t>(scan + random.below(length));
      bytes[at] = random.below(4) == 0 ? 0xff : static_cast<uint8_t>(random.below(256));
    }
    const std::string wanted = plain_outcome_of(bytes);
    ASSERT_EQ(outcome_of(bytes, decoder), wanted) << round;
    ++(wanted.starts_with("picture") ? refused : read);
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(read, 300);
}

}  // namespace
}  // namespace lockstep::image
