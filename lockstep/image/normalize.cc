#include "lockstep/image/normalize.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

// Rounded to nearest, ties to even; of finite numbers.
uint32_t bf16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// The same. Adding and subtracting a power of two rounds to the bits that stay, also where fp16 has fewer of them.
uint32_t f16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const float size = std::bit_cast<float>(bits & 0x7fffffff);
  if (size >= 65520) return sign | 0x7c00;
  const uint32_t exponent = bits >> 23 & 255;
  const uint32_t unit_exponent = (exponent < 113 ? 113 : exponent) - 10;  // of the last bit that stays
  const float magic = std::bit_cast<float>((unit_exponent + 23) << 23);
  const auto units = static_cast<uint32_t>((size + magic - magic) / std::bit_cast<float>(unit_exponent << 23));
  return sign | (((unit_exponent - 103) << 10) + units);
}

uint32_t bits_of(float value, Type type) {
  switch (type) {
    case Type::kBf16:
      return bf16_of(value);
    case Type::kF16:
      return f16_of(value);
    default:
      return std::bit_cast<uint32_t>(value);
  }
}

using Bits = std::array<std::array<uint32_t, 256>, 4>;

// Of an image with alpha.
template <typename T>
void store_with_alpha(const Pixels& from, const Bits& bits, T* to, bool channels_last) {
  const int width = from.width(), height = from.height(), channels = from.channels();
  const ptrdiff_t plane = ptrdiff_t{width} * height;
  const ptrdiff_t next_pixel = channels_last ? channels : 1, next_channel = channels_last ? 1 : plane;
  for (int y = 0; y < height; ++y) {
    const uint8_t* pixel = from.row(y);
    for (int x = 0; x < width; ++x, pixel += 4, to += next_pixel) {
      for (int c = 0; c < channels; ++c) {
        const int byte = from.byte_of(c);
        to[c * next_channel] = static_cast<T>(bits[static_cast<size_t>(byte)][pixel[byte]]);
      }
    }
  }
}

template <typename T>
void store_as(const Pixels& from, const Bits& bits, T* to, bool channels_last) {
  if (from.has_alpha()) return store_with_alpha(from, bits, to, channels_last);
  const int width = from.width(), height = from.height();
  const size_t plane = static_cast<size_t>(width) * static_cast<size_t>(height);
  for (int y = 0; y < height; ++y) {
    const uint8_t* pixel = from.row(y);
    if (from.channels() == 1) {
      for (int x = 0; x < width; ++x) *to++ = static_cast<T>(bits[0][pixel[x]]);
    } else if (channels_last) {
      for (int x = 0; x < width; ++x, pixel += 4, to += 3) {
        to[0] = static_cast<T>(bits[0][pixel[0]]);
        to[1] = static_cast<T>(bits[1][pixel[1]]);
        to[2] = static_cast<T>(bits[2][pixel[2]]);
      }
    } else {
      for (int x = 0; x < width; ++x, pixel += 4, ++to) {
        to[0] = static_cast<T>(bits[0][pixel[0]]);
        to[plane] = static_cast<T>(bits[1][pixel[1]]);
        to[2 * plane] = static_cast<T>(bits[2][pixel[2]]);
      }
    }
  }
}

}  // namespace

NormalizeTable::NormalizeTable(const Normalize& normalize, Type type) : type_(type) {
  for (size_t c = 0; c < bits_.size(); ++c) {
    const float mean = c < 3 ? normalize.mean[c] : 0, std = c < 3 ? normalize.std[c] : 1;
    if (!(std > 0)) throw ConfigError("normalising: a standard deviation of ", std, ": it is above 0");
    for (uint32_t v = 0; v < 256; ++v) {
      const float value = (static_cast<float>(v) / 255 - mean) / std;
      bits_[c][v] = type == Type::kU8 ? v : bits_of(value, type);
    }
  }
}

void NormalizeTable::store(const Pixels& from, void* to, bool channels_last) const {
  switch (type_) {
    case Type::kU8:
      return store_as(from, bits_, static_cast<uint8_t*>(to), channels_last);
    case Type::kF32:
      return store_as(from, bits_, static_cast<uint32_t*>(to), channels_last);
    default:
      return store_as(from, bits_, static_cast<uint16_t*>(to), channels_last);
  }
}

void NormalizeTable::entries(int channels, void* to) const {
  const size_t size = type_ == Type::kU8 ? 1 : type_ == Type::kF32 ? 4 : 2;
  auto* bytes = static_cast<char*>(to);
  for (int c = 0; c < channels; ++c) {
    for (const uint32_t entry : bits_[static_cast<size_t>(byte_of(c, channels))]) {
      std::memcpy(bytes, &entry, size);  // its lowest bytes come first
      bytes += size;
    }
  }
}

void store_classes(const Pixels& mask, int64_t* to) {
  for (int y = 0; y < mask.height(); ++y) {
    const uint8_t* from = mask.row(y);
    for (int x = 0; x < mask.width(); ++x) *to++ = from[x];
  }
}

}  // namespace lockstep::image
