#include "lockstep/datasets/files/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets {
namespace {

using testing::data_error;
using testing::gzip;
using ::testing::HasSubstr;

std::span<const uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string text(const Bytes& bytes) { return {bytes.span().begin(), bytes.span().end()}; }

std::string noise(size_t size) {
  std::mt19937 random(1);
  std::string noise(size, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  return noise;
}

std::string text_of(const std::string& packed, uint64_t expected, uint64_t most) {
  return text(gunzip(bytes(packed), expected, most, "f.gz"));
}

TEST(Gzip, KnowsItsMagic) {
  EXPECT_TRUE(is_gzip(bytes(gzip("x"))));
  EXPECT_FALSE(is_gzip(bytes("PK")));
  EXPECT_FALSE(is_gzip(bytes("")));
}

TEST(Gzip, UnpacksWhateverTheExpectation) {
  const std::string content = noise(1000) + std::string(100000, 'a');
  for (const uint64_t expected : {0, 1, 1000, 101000, 200000}) {
    EXPECT_EQ(text_of(gzip(content), expected, 1 << 20), content) << expected;
  }
  EXPECT_EQ(text_of(gzip(""), 0, 10), "");
}

TEST(Gzip, UnpacksSeveralMembers) {
  EXPECT_EQ(text_of(gzip("first ") + gzip("second ") + gzip("third"), 5, 100), "first second third");
}

TEST(Gzip, RefusesMoreThanTheLimit) {
  const std::string bomb = gzip(std::string(10 << 20, '\0'));
  ASSERT_LT(bomb.size(), 20000u);
  EXPECT_THAT(data_error([&] { text_of(bomb, 100, 1000); }), HasSubstr("f.gz: byte 1000"));
  EXPECT_EQ(text_of(bomb, 100, 10 << 20).size(), 10u << 20);
}

TEST(Gzip, RefusesDamage) {
  const std::string sound = gzip(noise(5000));
  EXPECT_THAT(data_error([&] { text_of(sound.substr(0, 3000), 5000, 5000); }), HasSubstr("damaged or cut short"));
  EXPECT_THAT(data_error([&] { text_of(sound.substr(0, 5), 5000, 5000); }), HasSubstr("f.gz"));
  std::string flipped = sound;
  flipped[2000] = static_cast<char>(flipped[2000] ^ 1);
  EXPECT_THAT(data_error([&] { text_of(flipped, 5000, 5000); }), HasSubstr("damaged"));
  EXPECT_THAT(data_error([&] { text_of(sound + "and more, which is not gzip", 5000, 9000); }),
              HasSubstr("not gzip data"));
}

TEST(Gzip, GivesTheHeadOfAnyKindOfBlock) {
  const std::string zeros = "head" + std::string(1 << 20, '\0');
  const std::string random = noise(1 << 20);
  for (const int level : {0, 1, 6, 12}) {  // 0: stored blocks
    EXPECT_EQ(text(gunzip_head(bytes(gzip(zeros, level)), 6, "f")), zeros.substr(0, 6)) << level;
    EXPECT_EQ(text(gunzip_head(bytes(gzip(random, level)), 60000, "f")), random.substr(0, 60000)) << level;
  }
  EXPECT_EQ(text(gunzip_head(bytes(gzip("abc")), 16, "f")), "abc");
}

TEST(Gzip, HasNoHeadWhereNothingCanBeUnpacked) {
  std::string packed = gzip("abc");
  packed[10] = '\x07';  // a block of a type that there is not
  EXPECT_THAT(data_error([&] { gunzip_head(bytes(packed), 16, "f"); }), HasSubstr("f: byte 0: the gzip data"));
  EXPECT_EQ(text(gunzip_head(bytes(gzip(std::string(1 << 20, '\0'))), 3, "f")), std::string(3, '\0'));
}

TEST(Gzip, HintsAtTheSize) {
  EXPECT_EQ(gunzip_size_hint(bytes(gzip(std::string(70000, 'x')))), 70000u);
  EXPECT_EQ(gunzip_size_hint(bytes("short")), 0u);
}

}  // namespace
}  // namespace lockstep::datasets
