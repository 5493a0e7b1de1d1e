#include "lockstep/image/colour_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "lockstep/image/grey.h"

namespace lockstep::image {
namespace {

constexpr int kBits = 15, kOne = 1 << kBits;
int fixed(double factor) { return static_cast<int>(std::lround(factor * kOne)); }

// factor · value + (1 - factor) · other, rounded.
uint8_t blended(int value, int other, int factor) {
  const int sum = other * kOne + factor * (value - other) + kOne / 2;
  return static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

using Table = std::array<uint8_t, 256>;

template <typename Visit>
void for_each_pixel(Pixels& pixels, const Visit& visit) {
  for (int y = 0; y < pixels.height(); ++y) {
    uint8_t *pixel = pixels.row(y), *const end = pixel + static_cast<ptrdiff_t>(pixels.width()) * pixels.step();
    for (; pixel != end; pixel += pixels.step()) visit(pixel);
  }
}

template <typename Level>
Table table_of(const Level& level) {
  Table table;
  for (int v = 0; v < 256; ++v) table[static_cast<size_t>(v)] = level(v);
  return table;
}

void look_up(Pixels& pixels, const Table& table) {
  const int colours = pixels.colours();
  for_each_pixel(pixels, [&](uint8_t* pixel) {
    for (int c = 0; c < colours; ++c) pixel[c] = table[pixel[c]];
  });
}

using Histogram = std::array<int64_t, 256>;
Histogram histogram_of(Pixels& pixels, int channel) {
  Histogram counts{};
  for_each_pixel(pixels, [&](const uint8_t* pixel) { ++counts[pixel[channel]]; });
  return counts;
}

// Changes each channel by the table that `make` gives for its histogram.
template <typename Make>
void change_by_histogram(Pixels& pixels, const Make& make) {
  for (int c = 0; c < pixels.colours(); ++c) {
    const Table table = make(histogram_of(pixels, c));
    for_each_pixel(pixels, [&](uint8_t* pixel) { pixel[c] = table[pixel[c]]; });
  }
}

int mean_grey(Pixels& pixels) {
  int64_t sum = 0;
  const bool grey = pixels.channels() == 1;
  for_each_pixel(pixels, [&](const uint8_t* pixel) { sum += grey ? pixel[0] : grey_of(pixel); });
  const int64_t count = int64_t{pixels.width()} * pixels.height();
  return static_cast<int>((2 * sum + count) / (2 * count));
}

// Hues count from red over green and blue; a sixth of the circle is kSixth, and goes from one of the six pure colours
// to the next.
constexpr int kSixth = 1 << 15;

int hue_of(const uint8_t* pixel, int most, int range) {
  const int red = pixel[0], green = pixel[1], blue = pixel[2];
  const int difference = most == red ? green - blue : most == green ? blue - red : red - green;
  const int sector = most == red ? 0 : most == green ? 2 : 4;
  return (sector * kSixth + difference * kSixth / range + 6 * kSixth) % (6 * kSixth);
}

// The colour of a hue whose channels go from `least` up by `range`.
void set_hue(uint8_t* pixel, int hue, int least, int range) {
  const auto channel = [&](int from_hue) {
    const int away = std::abs((hue - from_hue + 9 * kSixth) % (6 * kSixth) - 3 * kSixth);  // 0 at the channel's own hue
    const int share = std::clamp(2 * kSixth - away, 0, kSixth);
    return static_cast<uint8_t>(least + (range * share + kSixth / 2) / kSixth);
  };
  pixel[0] = channel(0);
  pixel[1] = channel(2 * kSixth);
  pixel[2] = channel(4 * kSixth);
}

}  // namespace

void change_brightness(Pixels& pixels, double factor) {
  look_up(pixels, table_of([f = fixed(factor)](int v) { return blended(v, 0, f); }));
}

void change_contrast(Pixels& pixels, double factor) {
  look_up(pixels, table_of([f = fixed(factor), mean = mean_grey(pixels)](int v) { return blended(v, mean, f); }));
}

void change_saturation(Pixels& pixels, double factor) {
  if (pixels.channels() == 1) return;
  const int f = fixed(factor);
  for_each_pixel(pixels, [&](uint8_t* pixel) {
    const int grey = grey_of(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blended(pixel[c], grey, f);
  });
}

// The blurred image is Pillow's SMOOTH: the mean of 9 pixels, of which the middle one counts five times. Edges stay.
void change_sharpness(Pixels& pixels, double factor, Pixels& copy) {
  copy.reshape(pixels.size(), pixels.channels());
  const int step = pixels.step(), colours = pixels.colours(), f = fixed(factor);
  for (int y = 0; y < pixels.height(); ++y) {
    std::memcpy(copy.row(y), pixels.row(y), static_cast<size_t>(pixels.width()) * static_cast<size_t>(step));
  }
  for (int y = 1; y + 1 < pixels.height(); ++y) {
    for (int x = 1; x + 1 < pixels.width(); ++x) {
      const uint8_t *const above = copy.at(x, y - 1), *const here = copy.at(x, y), *const below = copy.at(x, y + 1);
      for (int c = 0; c < colours; ++c) {
        const int sum = above[c - step] + above[c] + above[c + step] + here[c - step] + 5 * here[c] + here[c + step] +
                        below[c - step] + below[c] + below[c + step];
        pixels.at(x, y)[c] = blended(here[c], (2 * sum + 13) / 26, f);
      }
    }
  }
}

void turn_hue(Pixels& pixels, double turns) {
  if (pixels.channels() == 1) return;
  const auto shift = static_cast<int>(std::lround(turns * 6 * kSixth));
  for_each_pixel(pixels, [&](uint8_t* pixel) {
    const int most = std::max({pixel[0], pixel[1], pixel[2]}), least = std::min({pixel[0], pixel[1], pixel[2]});
    if (most == least) return;
    set_hue(pixel, (hue_of(pixel, most, most - least) + shift + 6 * kSixth) % (6 * kSixth), least, most - least);
  });
}

void posterize(Pixels& pixels, int bits) {
  look_up(pixels, table_of([&](int v) { return static_cast<uint8_t>(v & ~((1 << (8 - bits)) - 1)); }));
}

void solarize(Pixels& pixels, int from) {
  look_up(pixels, table_of([&](int v) { return static_cast<uint8_t>(v < from ? v : 255 - v); }));
}

void autocontrast(Pixels& pixels) {
  change_by_histogram(pixels, [](const Histogram& counts) {
    int low = 0, high = 255;
    while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
    while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
    const int range = high - low;
    return table_of([&](int v) {
      return static_cast<uint8_t>(range <= 0 ? v : std::clamp((2 * 255 * (v - low) + range) / (2 * range), 0, 255));
    });
  });
}

void equalize(Pixels& pixels) {
  change_by_histogram(pixels, [](const Histogram& counts) {
    int64_t sum = 0, last = 0;
    for (const int64_t count : counts) {
      sum += count;
      if (count != 0) last = count;
    }
    const int64_t step = (sum - last) / 255;
    int64_t below = step / 2;
    return table_of([&](int v) {
      const int64_t level = step == 0 ? v : below / step;
      below += counts[static_cast<size_t>(v)];
      return static_cast<uint8_t>(std::min<int64_t>(level, 255));
    });
  });
}

}  // namespace lockstep::image
