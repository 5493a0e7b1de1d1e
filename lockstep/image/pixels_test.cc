#include "lockstep/image/pixels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lockstep/image/set_size.h"

namespace lockstep::image {
namespace {

TEST(Pixels, MemoryIsKeptForSmallerImagesUnlessItIsMuch) {
  Pixels pixels;
  pixels.reshape({2000, 1000}, 3);
  const size_t some = pixels.capacity();
  pixels.reshape({1, 1}, 3);
  EXPECT_EQ(pixels.capacity(), some);
  pixels.reshape({6000, 4000}, 3);
  const size_t much = pixels.capacity();
  pixels.reshape({3000, 2500}, 3);
  EXPECT_EQ(pixels.capacity(), much);
  pixels.reshape({500, 375}, 3);
  EXPECT_LT(pixels.capacity(), size_t{1} << 20);
  EXPECT_GE(pixels.capacity(), size_t{4} * 500 * 375);
}

TEST(Pixels, VectorsGiveMemoryBackAlike) {
  std::vector<uint32_t> values;
  set_size(values, 2'000'000);
  set_size(values, 10);
  EXPECT_GE(values.capacity(), 2'000'000u);
  set_size(values, 24'000'000);
  set_size(values, 7'000'000);
  EXPECT_GE(values.capacity(), 24'000'000u);
  set_size(values, 1000);
  EXPECT_EQ(values.size(), 1000u);
  EXPECT_LT(values.capacity(), 100'000u);
}

}  // namespace
}  // namespace lockstep::image
