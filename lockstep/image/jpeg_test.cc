#include "lockstep/image/jpeg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  int channels = 3;
  JpegOptions options = {};
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

const Kind kKinds[] = {
    {"grey", 1},
    {"grey_progressive", 1, {.progressive = true}},
    {"s444", 3, {.subsampling = Subsampling::k444}},
    {"s422", 3, {.subsampling = Subsampling::k422}},
    {"s420", 3, {.subsampling = Subsampling::k420}},
    {"s440", 3, {.subsampling = Subsampling::k440}},
    {"s411", 3, {.subsampling = Subsampling::k411}},
    {"s420_progressive", 3, {.subsampling = Subsampling::k420, .progressive = true}},
    {"s422_progressive", 3, {.subsampling = Subsampling::k422, .progressive = true}},
    {"s444_progressive", 3, {.subsampling = Subsampling::k444, .progressive = true}},
    {"s440_progressive", 3, {.subsampling = Subsampling::k440, .progressive = true}},
    {"s410", 3, {.subsampling = Subsampling::k410}},
    {"s420_separate", 3, {.interleaved = false}},
    {"s444_separate", 3, {.subsampling = Subsampling::k444, .interleaved = false}},
    {"s420_restarts", 3, {.restart_rows = 1}},
    {"s422_restarts", 3, {.subsampling = Subsampling::k422, .restart_rows = 2}},
    {"s420_progressive_restarts", 3, {.progressive = true, .restart_rows = 1}},
    {"grey_restarts", 1, {.restart_rows = 1}},
    {"cmyk", 3, {.cmyk = true}},
};

class JpegCrop : public ::testing::TestWithParam<Kind> {};

TEST_P(JpegCrop, AThousandRectanglesAreSlicesOfTheWhole) {
  const Size sizes[] = {{131, 93}, {64, 48}, {17, 200}, {203, 9}, {7, 5}};
  RandomStream random(1, Purpose::kSynthetic, 0, 0);
  for (const Size size : sizes) {
    const auto bytes = encode_jpeg(picture(size, GetParam().channels), GetParam().options);
    for (const int channels : {GetParam().channels, 3}) {
      const Pixels all = decoded(bytes, {.channels = channels});
      for (int i = 0; i < 100; ++i) {
        const Rect rect = random_rect(random, size);
        ASSERT_EQ(difference(decoded(bytes, {.channels = channels}, rect), slice(all, rect)), 0)
            << size.width << " x " << size.height << ": " << rect.x << ", " << rect.y << ", " << rect.width << " x "
            << rect.height;
      }
    }
  }
}

TEST_P(JpegCrop, TheWholeIsNearThePicture) {
  const Pixels original = picture({100, 80}, GetParam().channels);
  JpegOptions options = GetParam().options;
  options.quality = 100;
  double sum = 0;
  const Pixels pixels = decoded(encode_jpeg(original, options), {.channels = GetParam().channels});
  ASSERT_EQ(pixels.size(), original.size());
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 100; ++x) {
      for (int c = 0; c < original.channels(); ++c) sum += std::abs(pixels.at(x, y)[c] - original.at(x, y)[c]);
    }
  }
  EXPECT_LT(sum / (100 * 80 * original.channels()), 16);
}

INSTANTIATE_TEST_SUITE_P(Kinds, JpegCrop, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

TEST(Jpeg, GreyComesAsColourWhereThatIsAsked) {
  const Pixels grey = decoded(encode_jpeg(picture({40, 30}, 1)), {.channels = 1});
  const Pixels colour = decoded(encode_jpeg(picture({40, 30}, 1)), {.channels = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(colour.at(7, 5)[i], grey.at(7, 5)[0]);
}

TEST(Jpeg, CmykIsReadAsAdobeStoresIt) {
  const Pixels red = flat({16, 16}, 3, 0);
  Pixels original = slice(red, {0, 0, 16, 16});
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 16; ++x) original.at(x, y)[0] = 200;
  }
  const Pixels pixels = decoded(encode_jpeg(original, {.quality = 100, .cmyk = true}));
  EXPECT_NEAR(pixels.at(8, 8)[0], 200, 2);
  EXPECT_NEAR(pixels.at(8, 8)[1], 0, 2);
}

TEST(Jpeg, ACutFileIsRefusedWhereverItIsCut) {
  for (const bool progressive : {false, true}) {
    auto bytes = encode_jpeg(picture({120, 90}), {.progressive = progressive});
    ASSERT_EQ(refusal(bytes), "");
    for (size_t length = 0; length + 2 <= bytes.size(); length += 37) {
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
      EXPECT_THAT(refusal(cut), HasSubstr("picture: ")) << length;
      if (length > 700) EXPECT_THAT(refusal(cut, {}, {0, 0, 8, 8}), HasSubstr("ends early")) << length;
    }
    bytes.resize(bytes.size() - 1);
    EXPECT_THAT(refusal(bytes), HasSubstr("ends early"));
  }
}

TEST(Jpeg, ALostPartOfTheDataIsRefused) {
  auto bytes = encode_jpeg(picture({120, 90}));
  bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(bytes.size() / 2), bytes.end() - 2);
  EXPECT_THAT(refusal(bytes), HasSubstr("a damaged JPEG (Corrupt JPEG data: premature end of data segment at row "));
  EXPECT_EQ(refusal(bytes, {}, {0, 0, 100, 4}), "");  // the part above is sound
}

TEST(Jpeg, BytesAfterTheEndDoNoHarm) {
  auto bytes = encode_jpeg(picture({40, 30}));
  const Pixels all = decoded(bytes);
  bytes.insert(bytes.end(), 1000, 0x17);
  EXPECT_EQ(difference(decoded(bytes), all), 0);
}

TEST(Jpeg, TooManyScansAreRefused) {
  const auto bytes = encode_jpeg(picture({40, 30}), {.progressive = true});
  EXPECT_EQ(refusal(bytes, {.limits = {.scans = 20}}), "");
  EXPECT_THAT(refusal(bytes, {.limits = {.scans = 3}}), HasSubstr("too many scans"));
}

TEST(Jpeg, ScansOfALargeImageAreCountedByItsPixels) {
  const auto bytes = encode_jpeg(picture({40, 30}), {.progressive = true});  // 10 scans
  EXPECT_EQ(refusal(bytes, {.limits = {.scanned = 10 * 40 * 30}}), "");
  EXPECT_THAT(refusal(bytes, {.limits = {.scanned = 10 * 40 * 30 - 1}}), HasSubstr("too many scans for its size"));
}

// Some cameras write 0 for the last coefficient of a baseline scan.
TEST(Jpeg, ABaselineScanMayNameNoCoefficients) {
  auto bytes = encode_jpeg(picture({40, 30}));
  const Pixels all = decoded(bytes);
  const std::vector<uint8_t> names = {0, 63, 0};
  const auto place = std::search(bytes.begin(), bytes.end(), names.begin(), names.end());
  ASSERT_NE(place, bytes.end());
  place[1] = 0;
  EXPECT_EQ(difference(decoded(bytes), all), 0);
}

TEST(Jpeg, BytesLeftBeforeARestartAreDamage) {
  auto bytes = encode_jpeg(picture({40, 64}), {.restart_rows = 1});
  const std::vector<uint8_t> restart = {0xff, 0xd0};
  const auto place = std::search(bytes.begin(), bytes.end(), restart.begin(), restart.end());
  ASSERT_NE(place, bytes.end());
  ASSERT_EQ(refusal(bytes), "");
  bytes.insert(place, 16, 0x55);
  EXPECT_THAT(refusal(bytes), HasSubstr("a damaged JPEG (Corrupt JPEG data: "));
}

TEST(Jpeg, AnOrientationBehindStrayBytesIsRead) {
  auto bytes = encode_jpeg(picture({40, 30}), {.orientation = 6});
  bytes.insert(bytes.begin() + 2 + 18, {0, 7});  // behind JFIF's segment
  EXPECT_EQ(decoded(bytes).size(), (Size{30, 40}));
}

TEST(Jpeg, AReaderGoesOnAfterADamagedFile) {
  const auto sound = encode_jpeg(picture({60, 50}));
  auto damaged = sound;
  damaged.erase(damaged.begin() + static_cast<ptrdiff_t>(damaged.size() / 2), damaged.end() - 2);
  Decoder decoder;
  Pixels pixels;
  decoder.open(damaged, "damaged");
  EXPECT_THROW(decoder.decode({0, 0, 60, 50}, {60, 50}, pixels), DataError);
  decoder.open(sound, "sound");
  decoder.open(sound, "sound again");
  const Rect place = decoder.decode({0, 0, 60, 50}, {60, 50}, pixels);
  EXPECT_EQ(difference(slice(pixels, place), decoded(sound)), 0);
}

// The file without its segments of the type `marker`.
std::vector<uint8_t> without(uint8_t marker, std::vector<uint8_t> bytes) {
  for (size_t at = 2; bytes[at + 1] != 0xda;) {  // up to the first scan
    const ptrdiff_t length = 2 + (bytes[at + 2] << 8 | bytes[at + 3]);
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
    if (bytes[at + 1] == marker) {
      bytes.erase(begin, begin + length);
    } else {
      at += static_cast<size_t>(length);
    }
  }
  return bytes;
}

// Of two files that a thread decodes, the first leaves nothing to the second.
TEST(Jpeg, TablesOfTheFileBeforeAreForgotten) {
  constexpr uint8_t kQuantizers = 0xdb, kHuffman = 0xc4;
  const auto after = [](const std::vector<uint8_t>& before, const std::vector<uint8_t>& bytes) -> std::string {
    Decoder decoder;
    Pixels pixels;
    decoder.open(before, "before");
    decoder.decode({0, 0, 40, 30}, {40, 30}, pixels);
    try {
      decoder.open(bytes, "picture");
      const Rect place = decoder.decode({0, 0, 40, 30}, {40, 30}, pixels);
      return cat(hash_of(slice(pixels, place)));
    } catch (const DataError& error) {
      return error.what();
    }
  };
  const auto sound = encode_jpeg(picture({40, 30})), other = encode_jpeg(picture({40, 30}), {.quality = 30}),
             progressive = encode_jpeg(picture({40, 30}), {.progressive = true});
  EXPECT_THAT(after(other, without(kQuantizers, sound)), HasSubstr("Quantization table 0x00 was not defined"));
  EXPECT_THAT(after(progressive, without(kHuffman, progressive)), HasSubstr("Huffman table 0x00 was not defined"));
  // Cameras that film leave out the tables that the standard gives, which encode_jpeg writes.
  EXPECT_EQ(after(progressive, without(kHuffman, sound)), cat(hash_of(decoded(sound))));
}

TEST(Jpeg, FastDecodingScalesButNotBelowWhatIsWanted) {
  const auto bytes = encode_jpeg(picture({400, 320}));
  Decoder decoder;
  Pixels pixels;
  const auto place = [&](const Rect& crop, Size wanted) {
    decoder.open(bytes, "picture", {.fast = true});
    return decoder.decode(crop, wanted, pixels).size();
  };
  EXPECT_EQ(place({0, 0, 400, 320}, {400, 320}), (Size{400, 320}));
  EXPECT_EQ(place({0, 0, 400, 320}, {201, 100}), (Size{400, 320}));
  EXPECT_EQ(place({0, 0, 400, 320}, {200, 100}), (Size{200, 160}));
  EXPECT_EQ(place({0, 0, 400, 320}, {50, 40}), (Size{50, 40}));
  EXPECT_EQ(place({0, 0, 400, 320}, {5, 4}), (Size{50, 40}));
  EXPECT_EQ(place({100, 60, 200, 100}, {100, 50}), (Size{100, 50}));
  EXPECT_EQ(place({101, 61, 200, 100}, {100, 50}), (Size{101, 51}));
}

}  // namespace
}  // namespace lockstep::image
