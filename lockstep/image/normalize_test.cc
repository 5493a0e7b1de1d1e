#include "lockstep/image/normalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

const Normalize kImageNet{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

float expected_of(const Pixels& pixels, int x, int y, int c) {
  const auto i = static_cast<size_t>(c);
  return (static_cast<float>(pixels.at(x, y)[c]) / 255 - kImageNet.mean[i]) / kImageNet.std[i];
}

template <typename T>
std::vector<T> stored(const Pixels& pixels, const Normalize& normalize, Type type, bool channels_last) {
  const size_t values = static_cast<size_t>(pixels.width() * pixels.height() * pixels.channels());
  std::vector<T> memory(values + 1, T{77});
  NormalizeTable(normalize, type).store(pixels, memory.data(), channels_last);
  EXPECT_EQ(memory.back(), T{77});
  memory.pop_back();
  return memory;
}

TEST(NormalizeTable, IsTheFormulasBitsInBothLayouts) {
  for (const int channels : {1, 3}) {
    const Pixels pixels = picture({13, 7}, channels);
    const auto planes = stored<float>(pixels, kImageNet, Type::kF32, false);
    const auto last = stored<float>(pixels, kImageNet, Type::kF32, true);
    for (int y = 0; y < 7; ++y) {
      for (int x = 0; x < 13; ++x) {
        for (int c = 0; c < channels; ++c) {
          const float expected = expected_of(pixels, x, y, c);
          ASSERT_EQ(planes[static_cast<size_t>((c * 7 + y) * 13 + x)], expected);
          ASSERT_EQ(last[static_cast<size_t>((y * 13 + x) * channels + c)], expected);
        }
      }
    }
  }
}

template <typename T>
void expect_entries_as_stored(Type type) {
  for (const int channels : {1, 3}) {
    Pixels all;
    all.reshape({256, 1}, channels);
    for (int v = 0; v < 256; ++v) std::fill_n(all.at(v, 0), channels, static_cast<uint8_t>(v));
    std::vector<T> entries(static_cast<size_t>(channels) * 256 + 1, T{77});
    NormalizeTable(kImageNet, type).entries(channels, entries.data());
    EXPECT_EQ(entries.back(), T{77});
    entries.pop_back();
    EXPECT_EQ(entries, stored<T>(all, kImageNet, type, false));
  }
}

TEST(NormalizeTable, EntriesAreWhatIsStored) {
  expect_entries_as_stored<float>(Type::kF32);
  expect_entries_as_stored<uint16_t>(Type::kBf16);
  expect_entries_as_stored<uint16_t>(Type::kF16);
  expect_entries_as_stored<uint8_t>(Type::kU8);
}

TEST(NormalizeTable, BytesStayAsTheyAre) {
  const Pixels pixels = picture({13, 7});
  const auto bytes = stored<uint8_t>(pixels, kImageNet, Type::kU8, false);
  EXPECT_EQ(bytes[13 * 7 + 5], pixels.at(5, 0)[1]);
}

// The number that 16 bits stand for, by the definition of their type.
double number_of(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1), bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits >> 15 ? -size : size;
}

// Nothing is nearer, and of two that are as near the even one is taken.
void expect_nearest(uint16_t bits, float value, int exponent_bits, int mantissa_bits) {
  const auto error = [&](uint16_t other) {
    return std::abs(number_of(other, exponent_bits, mantissa_bits) - double{value});
  };
  for (const auto other : {static_cast<uint16_t>(bits + 1), static_cast<uint16_t>(bits - 1)}) {
    if ((other ^ bits) & 0x8000) continue;
    EXPECT_LE(error(bits), error(other)) << value;
    if (error(bits) == error(other)) EXPECT_EQ(bits & 1, 0) << value;
  }
  EXPECT_EQ(bits >> 15, std::signbit(value)) << value;
}

TEST(NormalizeTable, HalfTypesAreRoundedToNearestEven) {
  Pixels all;
  all.reshape({256, 1}, 1);
  for (int v = 0; v < 256; ++v) all.at(v, 0)[0] = static_cast<uint8_t>(v);
  for (const float mean : {0.485f, 0.0f, 1.0f, 3e-6f}) {
    for (const float deviation : {0.229f, 1.0f, 1000.0f, 1e5f, 0.00390625f, 255.0f / 2048}) {
      const Normalize normalize{{mean, 0, 0}, {deviation, 1, 1}};
      const auto values = stored<float>(all, normalize, Type::kF32, false);
      const auto brain = stored<uint16_t>(all, normalize, Type::kBf16, false);
      const auto half = stored<uint16_t>(all, normalize, Type::kF16, false);
      for (size_t v = 0; v < 256; ++v) {
        expect_nearest(brain[v], values[v], 8, 7);
        expect_nearest(half[v], values[v], 5, 10);
      }
    }
  }
}

TEST(NormalizeTable, DeviationsArePositive) {
  EXPECT_THROW(NormalizeTable({{0, 0, 0}, {1, 0, 1}}, Type::kF32), ConfigError);
}

TEST(StoreClasses, AreWholeNumbers) {
  const Pixels mask = picture({5, 3}, 1);
  std::vector<int64_t> classes(15);
  store_classes(mask, classes.data());
  EXPECT_EQ(classes[7], mask.at(2, 1)[0]);
}

}  // namespace
}  // namespace lockstep::image
