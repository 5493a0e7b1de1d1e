// The arithmetic of resize.h for a decoded picture, pixel by pixel: what a device's kernels call, and the CPU in tests.
// It computes in integers, so that both give the bits of Resizer.
//
// Rows first: mix_row() makes each pixel of the source's rows that are used, in the columns of the result, of 8 bits.
// Then mix_column() makes each pixel of the result of them, flipped, and filled where the window goes beyond. An axis
// that is not resized has weights that change nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

namespace lockstep::image {

// Of the pixels [begin, begin + size) of the resized image; see axis.h. In the memory of whoever computes.
struct AxisTask {
  const int32_t* first = nullptr;
  const int32_t* count = nullptr;
  const int16_t* weights = nullptr;  // [size, taps]
  int32_t begin = 0, size = 0, taps = 0;
};

// Pixels of three channels. Steps are bytes.
struct ResizeTask {
  const uint8_t* source = nullptr;   // red of the upright source's first pixel; green and blue follow it
  int64_t right = 0, down = 0;       // steps to its neighbours, upright
  AxisTask across, along;            // along: of columns, downwards
  int32_t first_used = 0, used = 0;  // rows of the source that the second pass reads
  uint8_t* between = nullptr;        // [used, across.size, 3]
  uint8_t* result = nullptr;
  int64_t to_right = 0, to_down = 0, to_channel = 0;
  int32_t width = 0, height = 0;       // of the result
  int32_t window_x = 0, window_y = 0;  // its first pixel in the resized image, before flips
  bool flip_x = false, flip_y = false;
  uint8_t fill = 0;
};

// The sums of weights of 15 bits and of bytes become bytes.
LOCKSTEP_HOST_DEVICE inline uint8_t rounded(int32_t sum) {
  const int32_t value = (sum + (1 << 14)) >> 15;
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// The mean, by the weights of the axis' pixel x, of three channels that are `step` bytes apart from `from` on.
LOCKSTEP_HOST_DEVICE inline void mix(const AxisTask& axis, int32_t x, const uint8_t* from, int64_t step, uint8_t* to,
                                     int64_t to_channel) {
  const int16_t* weights = axis.weights + static_cast<int64_t>(x) * axis.taps;
  const uint8_t* pixel = from + axis.first[x] * step;
  int32_t red = 0, green = 0, blue = 0;
  for (int32_t tap = 0; tap < axis.count[x]; ++tap, pixel += step) {
    red += weights[tap] * pixel[0];
    green += weights[tap] * pixel[1];
    blue += weights[tap] * pixel[2];
  }
  to[0] = rounded(red);
  to[to_channel] = rounded(green);
  to[2 * to_channel] = rounded(blue);
}

// Makes the pixel (x, y) of `between`: x below across.size, y below used.
LOCKSTEP_HOST_DEVICE inline void mix_row(const ResizeTask& task, int32_t x, int32_t y) {
  mix(task.across, x, task.source + (task.first_used + y) * task.down, task.right,
      task.between + 3 * (static_cast<int64_t>(y) * task.across.size + x), 1);
}

// Makes the pixel (x, y) of the result.
LOCKSTEP_HOST_DEVICE inline void mix_column(const ResizeTask& task, int32_t x, int32_t y) {
  uint8_t* to = task.result + x * task.to_right + y * task.to_down;
  const int32_t column = (task.flip_x ? task.width - 1 - x : x) + task.window_x - task.across.begin;
  const int32_t row = (task.flip_y ? task.height - 1 - y : y) + task.window_y - task.along.begin;
  if (column < 0 || column >= task.across.size || row < 0 || row >= task.along.size) {
    to[0] = to[task.to_channel] = to[2 * task.to_channel] = task.fill;
    return;
  }
  const int64_t stride = int64_t{3} * task.across.size;
  mix(task.along, row, task.between + 3 * int64_t{column} - task.first_used * stride, stride, to, task.to_channel);
}

}  // namespace lockstep::image
