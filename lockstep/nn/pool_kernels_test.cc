#include "lockstep/nn/pool_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

namespace lockstep::nn {
namespace {

float value_of(float x) { return x; }
float value_of(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }

template <typename T>
std::vector<T> numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (sizeof(T) == 2) {
      value = static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(random)) >> 16);
    } else {
      value = normal(random);
    }
  }
  return values;
}

template <typename T>
class PoolKernels : public testing::Test {};
using Types = testing::Types<float, uint16_t>;
TYPED_TEST_SUITE(PoolKernels, Types);

TYPED_TEST(PoolKernels, GoForwardAndBack) {
  constexpr size_t kPixels = 3;
  for (const size_t channels : {least_channels(), least_channels() + 1, size_t{40}, size_t{64}}) {
    auto top = numbers<TypeParam>(2 * kPixels * channels, 1);
    auto bottom = numbers<TypeParam>(2 * kPixels * channels, 2);
    const auto top_before = top;
    const auto bottom_before = bottom;
    std::vector<TypeParam> output(kPixels * channels);
    std::vector<Origin> origin(kPixels * channels);
    const PoolRow<TypeParam> row{top.data(), bottom.data(), output.data(), origin.data(), kPixels, channels};
    pool_row(row);
    EXPECT_EQ(top, top_before);
    for (size_t pixel = 0; pixel < kPixels; ++pixel) {
      for (size_t c = 0; c < channels; ++c) {
        const size_t left = 2 * pixel * channels + c;
        const float window[] = {value_of(top[left]), value_of(top[left + channels]), value_of(bottom[left]),
                                value_of(bottom[left + channels])};
        const auto greatest = std::max_element(window, window + 4);
        const size_t at = pixel * channels + c;
        EXPECT_EQ(value_of(output[at]), std::max(*greatest, 0.0F));
        EXPECT_EQ(origin[at], *greatest > 0 ? greatest - window : kNone);
      }
    }
    output = numbers<TypeParam>(kPixels * channels, 3);
    unpool_row({top.data(), bottom.data(), output.data(), origin.data(), kPixels, channels});
    for (size_t i = 0; i < top.size(); ++i) {
      const size_t at = i / channels / 2 * channels + i % channels;
      const size_t column = i / channels % 2;
      EXPECT_EQ(top[i], origin[at] == column ? output[at] : TypeParam{}) << i;
      EXPECT_EQ(bottom[i], origin[at] == 2 + column ? output[at] : TypeParam{}) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::nn
