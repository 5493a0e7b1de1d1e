#include "lockstep/image/encode.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

TEST(EncodeJpeg, QualityTellsTheSize) {
  const Pixels pixels = picture({80, 60});
  EXPECT_LT(encode_jpeg(pixels, {.quality = 75}).size(), encode_jpeg(pixels, {.quality = 98}).size());
  EXPECT_LT(encode_jpeg(pixels).size(), encode_jpeg(pixels, {.subsampling = Subsampling::k444}).size());
}

TEST(EncodeJpeg, TheSamePixelsGiveTheSameBytes) {
  EXPECT_EQ(encode_jpeg(picture({80, 60})), encode_jpeg(picture({80, 60})));
  EXPECT_EQ(encode_png(picture({80, 60})), encode_png(picture({80, 60})));
}

TEST(Encode, WhatCannotBeStoredIsABug) {
  EXPECT_THROW(encode_jpeg(Pixels()), BugError);
  EXPECT_THROW(encode_png(Pixels()), BugError);
  EXPECT_THROW(encode_png(picture({8, 8}), {.bits = 4}), BugError);  // colours have at least 8 bits
  EXPECT_THROW(encode_jpeg(flat({65536, 1}, 1, 0)), BugError);       // more than the format can say
}

}  // namespace
}  // namespace lockstep::image
