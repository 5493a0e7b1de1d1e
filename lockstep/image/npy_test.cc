#include "lockstep/image/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decoder.h"
#include "lockstep/image/mask_value.h"
#include "lockstep/image/testing/encode_npy.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::decoded;
using testing_support::encode_npy;
using testing_support::refusal;
using testing_support::values_of;

TEST(Npy, IsAGreyImage) {
  const Pixels pixels = decoded(encode_npy("'|u1'", "(2, 3)", {10, 11, 12, 20, 21, 22}), {.channels = 1});
  EXPECT_EQ(pixels.size(), (Size{3, 2}));
  EXPECT_EQ(pixels.channels(), 1);
  EXPECT_EQ(*pixels.at(2, 0), 12);
  EXPECT_EQ(*pixels.at(0, 1), 20);
}

TEST(Npy, IsAColourImageWhoseFourthChannelIsIgnored) {
  const Pixels three = decoded(encode_npy("'|u1'", "(1, 2, 3)", {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(three.at(1, 0)[2], 6);
  const auto four = encode_npy("'|u1'", "(1, 2, 4)", {1, 2, 3, 99, 4, 5, 6, 99});
  EXPECT_EQ(testing_support::difference(decoded(four), three), 0);
}

TEST(Npy, MayHaveEitherOrderAndVersion) {
  const auto rows = encode_npy("'|u1'", "(2, 3)", {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values_of(rows), values_of(encode_npy("'|u1'", "(2, 3)", {1, 4, 2, 5, 3, 6}, true)));
  EXPECT_EQ(values_of(rows), values_of(encode_npy("'|u1'", "(2, 3)", {1, 2, 3, 4, 5, 6}, false, 2)));
  EXPECT_EQ(values_of(rows), values_of(encode_npy("'|u1'", "(2, 3, 1)", {1, 2, 3, 4, 5, 6})));
}

TEST(Npy, ACropIsASliceOfTheWhole) {
  std::vector<uint8_t> elements(7 * 5 * 3);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<uint8_t>(i * 2);
  const auto bytes = encode_npy("'|u1'", "(5, 7, 3)", elements);
  const Rect part{2, 1, 4, 3};
  EXPECT_EQ(testing_support::difference(decoded(bytes, {}, part), testing_support::slice(decoded(bytes), part)), 0);
}

TEST(Npy, MasksMayBeOfAnyIntegerType) {
  EXPECT_THAT(values_of(encode_npy("'|b1'", "(1, 2)", {0, 1})), ElementsAre(0, 1));
  EXPECT_THAT(values_of(encode_npy("'|i1'", "(1, 2)", {0, 127})), ElementsAre(0, 127));
  EXPECT_THAT(values_of(encode_npy("'<u2'", "(1, 2)", {1, 2, 0, 1})), ElementsAre(513, 256));
  EXPECT_THAT(values_of(encode_npy("'>u2'", "(1, 2)", {1, 2, 0, 1})), ElementsAre(258, 1));
  EXPECT_THAT(values_of(encode_npy("'<i8'", "(1, 1)", {7, 0, 0, 0, 0, 0, 0, 0})), ElementsAre(7));
  EXPECT_THAT(values_of(encode_npy("'|u1'", "(1, 1, 3)", {1, 2, 3})), ElementsAre(mask_value(1, 2, 3)));
  EXPECT_THROW(values_of(encode_npy("'|i1'", "(1, 1)", {255})), DataError);
  EXPECT_THROW(values_of(encode_npy("'<i8'", "(1, 1)", {0, 0, 0, 0, 1, 0, 0, 0})), DataError);
}

TEST(Npy, BooleansAreBlackAndWhite) {
  const Pixels pixels = decoded(encode_npy("'|b1'", "(1, 2)", {0, 1}), {.channels = 1});
  EXPECT_EQ(*pixels.at(0, 0), 0);
  EXPECT_EQ(*pixels.at(1, 0), 255);
}

TEST(Npy, RefusesWhatIsNoImage) {
  EXPECT_THAT(refusal(encode_npy("'<f4'", "(1, 1)", {0, 0, 0, 0})), HasSubstr("'<f4' where whole numbers"));
  EXPECT_THAT(refusal(encode_npy("'<i8'", "(1, 1)", {7, 0, 0, 0, 0, 0, 0, 0})), HasSubstr("int64 where uint8"));
  EXPECT_THAT(refusal(encode_npy("'|u1'", "(3,)", {1, 2, 3})), HasSubstr("1 dimensions"));
  EXPECT_THAT(refusal(encode_npy("'|u1'", "(1, 1, 5)", {1, 2, 3, 4, 5})), HasSubstr("no image"));
  EXPECT_THAT(refusal(encode_npy("[('a', '|u1')]", "(1, 1)", {1})), HasSubstr("can't be read"));
}

TEST(Npy, RefusesShapesThatTheFileDoesNotHold) {
  EXPECT_THAT(refusal(encode_npy("'|u1'", "(2, 3)", {1, 2})), HasSubstr("2 bytes of elements where 6"));
  for (const char* shape : {"(16000000, 16000000)", "(99999999999, 1)", "(-1, 1)", "(0, 1)", "(1, 1", "()", ""}) {
    EXPECT_NE(refusal(encode_npy("'|u1'", shape, {1})), "") << shape;
  }
}

// Cut anywhere, it is refused by name.
TEST(Npy, RefusesEveryPartOfAFile) {
  const auto whole = encode_npy("'|u1'", "(2, 3)", {1, 2, 3, 4, 5, 6});
  for (size_t length = 6; length < whole.size(); ++length) {
    EXPECT_THAT(refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}), HasSubstr("picture: "))
        << length;
  }
}

}  // namespace
}  // namespace lockstep::image
