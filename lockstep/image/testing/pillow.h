// Pillow's resize of 8-bit channels (src/libImaging/Resample.c) in its own numbers: weights of 22 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/image/pixels.h"

namespace lockstep::image::testing_support {

struct PillowAxis {
  std::vector<int> first;
  std::vector<std::vector<int>> weights;
};

inline PillowAxis pillow_axis(int in, int out) {
  const double scale = static_cast<double>(in) / out, filter_scale = std::max(scale, 1.0), support = filter_scale;
  PillowAxis axis;
  for (int x = 0; x < out; ++x) {
    const double center = (x + 0.5) * scale, inverse = 1.0 / filter_scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int last = std::min(in, static_cast<int>(center + support + 0.5));
    std::vector<double> exact;
    double sum = 0;
    for (int i = 0; i < last - first; ++i) {
      const double t = std::abs((i + first - center + 0.5) * inverse);
      exact.push_back(t < 1 ? 1 - t : 0);
      sum += exact.back();
    }
    std::vector<int> weights;
    for (const double weight : exact) weights.push_back(static_cast<int>(0.5 + weight / sum * (1 << 22)));
    axis.first.push_back(first);
    axis.weights.push_back(weights);
  }
  return axis;
}

inline uint8_t pillow_sum(const uint8_t* pixels, ptrdiff_t step, const std::vector<int>& weights) {
  int sum = 1 << 21;
  for (size_t i = 0; i < weights.size(); ++i) sum += pixels[static_cast<ptrdiff_t>(i) * step] * weights[i];
  return static_cast<uint8_t>(std::clamp(sum >> 22, 0, 255));
}

inline Pixels pillow_resize(const Pixels& in, Size to) {
  Pixels between, out;
  between.reshape({to.width, in.height()}, in.channels());
  out.reshape(to, in.channels());
  const PillowAxis across = pillow_axis(in.width(), to.width), down = pillow_axis(in.height(), to.height);
  for (int y = 0; y < in.height(); ++y) {
    for (int x = 0; x < to.width; ++x) {
      const auto i = static_cast<size_t>(x);
      for (int c = 0; c < in.channels(); ++c) {
        between.at(x, y)[c] = pillow_sum(in.at(across.first[i], y) + c, in.step(), across.weights[i]);
      }
    }
  }
  for (int y = 0; y < to.height; ++y) {
    const auto i = static_cast<size_t>(y);
    for (int x = 0; x < to.width; ++x) {
      for (int c = 0; c < in.channels(); ++c) {
        out.at(x, y)[c] = pillow_sum(between.at(x, down.first[i]) + c, between.stride(), down.weights[i]);
      }
    }
  }
  return out;
}

}  // namespace lockstep::image::testing_support
