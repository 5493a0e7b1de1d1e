#include "lockstep/image/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace lockstep::image {
namespace {

TEST(Axis, WeightsAddUpToOne) {
  for (const int out : {1, 7, 32, 224, 256, 500}) {
    for (const int in : {1, 2, 20, 223, 224, 225, 500, 4000, 100000}) {
      const Axis axis = make_axis(in, out);
      for (int x = 0; x < out; ++x) {
        int sum = 0;
        const Taps taps = taps_of(in, out, x);
        ASSERT_LE(taps.last - taps.first, axis.taps);
        for (int i = 0; i < axis.taps; ++i) sum += axis.weights[static_cast<size_t>(x * axis.taps + i)];
        // 255 times the error stays below half of a level, so that areas of one colour stay as they are.
        ASSERT_LT(std::abs(sum - (1 << kWeightBits)), 33) << in << " -> " << out << ", " << x;
      }
    }
  }
}

TEST(Axis, ASizeThatStaysHasOneWeight) {
  const Axis axis = make_axis(100, 100);
  for (int x = 0; x < 100; ++x) {
    EXPECT_EQ(axis.first[static_cast<size_t>(x)], x);
    EXPECT_EQ(axis.weights[static_cast<size_t>(x * axis.taps)], 32767);
    EXPECT_EQ(axis.weights[static_cast<size_t>(x * axis.taps + 1)], 0);
  }
}

TEST(Axis, AWindowHasTheWeightsOfTheWhole) {
  for (const auto& [in, out] : {std::pair{20, 500}, {500, 500}, {4000, 300}}) {
    const Axis whole = make_axis(in, out), window = make_axis(in, out, {100, 160});
    ASSERT_EQ(window.begin, 100);
    ASSERT_EQ(window.first.size(), 60u);
    for (size_t x = 0; x < 60; ++x) {
      ASSERT_EQ(window.first[x], whole.first[100 + x]);
      ASSERT_EQ(window.count[x], whole.count[100 + x]);
      for (size_t i = 0; i < static_cast<size_t>(whole.taps); ++i) {
        ASSERT_EQ(window.weights[x * static_cast<size_t>(window.taps) + i],
                  whole.weights[(100 + x) * static_cast<size_t>(whole.taps) + i]);
      }
    }
  }
}

TEST(Axis, NearestIsTheMiddle) {
  EXPECT_EQ(nearest_of(4, 2, 0), 1);
  EXPECT_EQ(nearest_of(4, 2, 1), 3);
  EXPECT_EQ(nearest_of(2, 4, 1), 0);
  EXPECT_EQ(nearest_of(2, 4, 2), 1);
  EXPECT_EQ(nearest_of(1 << 24, 1 << 24, (1 << 24) - 1), (1 << 24) - 1);
}

}  // namespace
}  // namespace lockstep::image
