#include "lockstep/image/planes.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::image {
namespace {

TEST(Planes, BecomePixels) {
  std::vector<float> planes;
  for (int i = 0; i < 3 * 6; ++i) planes.push_back(static_cast<float>(i) / 2);
  const Pixels pixels =
      from_planes(planes.data(), {3, 2}, 3, [](float value) { return static_cast<uint8_t>(2 * value); });
  ASSERT_EQ(pixels.size(), (Size{3, 2}));
  for (int c = 0; c < 3; ++c) EXPECT_EQ(pixels.at(2, 1)[c], 5 + 6 * c) << c;
  EXPECT_EQ(from_planes(planes.data(), {1, 4}, 1, [](float) { return uint8_t{7}; }).channels(), 1);
}

}  // namespace
}  // namespace lockstep::image
