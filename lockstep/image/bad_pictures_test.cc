// What each of the bad pictures does: it is decoded, or refused on one line that names it, within bounds of memory.
#include "lockstep/image/testing/bad_pictures.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/testing/peak_memory.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/image/decoder.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using lockstep::testing_support::kMeasuresMemory;
using lockstep::testing_support::PeakMemory;

const std::string kName = "photos/a b.jpg";

const BadPictures& all() {
  static const BadPictures kAll = bad_pictures();
  return kAll;
}

std::string image_refusal(Decoder& decoder, const FileBytes& bytes) {
  return lockstep::testing_support::refusal<DataError>([&] {
    Pixels pixels;
    const Size size = decoder.open(bytes, kName).upright();
    const Rect whole{0, 0, size.width, size.height}, place = decoder.decode(whole, size, pixels);
    ASSERT_EQ(place.size(), size);
    hash_of(pixels);  // reads them all
  });
}

std::string mask_refusal(Decoder& decoder, const FileBytes& bytes) {
  return lockstep::testing_support::refusal<DataError>([&] {
    const Size size = decoder.open(bytes, kName).upright();
    std::vector<uint32_t> values;
    decoder.decode_values(values);
    ASSERT_EQ(values.size(), static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
  });
}

void check_line(const std::string& line) {
  constexpr size_t kMostLine = 400;
  EXPECT_TRUE(line.starts_with(kName + ": ")) << line;
  EXPECT_EQ(line, shown(line)) << "control characters";
  EXPECT_LT(line.size(), kMostLine) << line;
}

TEST(BadPictures, AreManyAndEachHasItsName) {
  std::set<std::string> names;
  for (const BadPicture& picture : all()) EXPECT_TRUE(names.insert(picture.name).second) << picture.name;
  EXPECT_GE(all().size(), 250u);
}

TEST(BadPictures, AreDecodedOrRefusedOnALineThatNamesThem) {
  Decoder decoder;
  const FileBytes sound = encode_jpeg(picture({20, 10}));
  for (const BadPicture& each : all()) {
    SCOPED_TRACE(each.name);
    const std::string of_image = image_refusal(decoder, each.bytes);
    for (const std::string& line : {of_image, mask_refusal(decoder, each.bytes)}) {
      if (!line.empty()) check_line(line);
      if (each.outcome != Outcome::kEither) EXPECT_EQ(line.empty(), each.outcome == Outcome::kDecoded) << line;
      if (!line.empty()) EXPECT_NE(line.find(each.why), std::string::npos) << line;
    }
    EXPECT_EQ(image_refusal(decoder, sound), "") << "a sound file after it";
  }
}

// The same decoder reads them in two orders: none leaves anything to the next.
TEST(BadPictures, GiveTheSamePixelsWhateverCameBefore) {
  Decoder forwards, backwards;
  const auto outcome = [](Decoder& decoder, const FileBytes& bytes) -> std::string {
    try {
      Pixels pixels;
      const Size size = decoder.open(bytes, kName).upright();
      const Rect place = decoder.decode({0, 0, size.width, size.height}, size, pixels);
      return cat(hash_of(slice(pixels, place)));
    } catch (const DataError& error) {
      return error.what();
    }
  };
  std::vector<std::string> first(all().size());
  for (size_t i = 0; i < all().size(); ++i) first[i] = outcome(forwards, all()[i].bytes);
  for (size_t i = all().size(); i-- > 0;) EXPECT_EQ(outcome(backwards, all()[i].bytes), first[i]) << all()[i].name;
}

// The largest sound one has 3000 x 2000 pixels: 24 MB, and as a mask as much again. Bombs claim a hundred times that.
TEST(BadPictures, TakeNoMoreMemoryThanTheSoundOnesAmongThem) {
  if (!kMeasuresMemory) GTEST_SKIP() << "sanitizers keep what is freed";
  const BadPictures& files = all();
  const PeakMemory peak;
  for (const BadPicture& each : files) {
    Decoder decoder;
    image_refusal(decoder, each.bytes);
    mask_refusal(decoder, each.bytes);
  }
  EXPECT_LT(peak.growth_mib(), 160);
}

}  // namespace
}  // namespace lockstep::image
