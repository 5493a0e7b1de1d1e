#include "lockstep/nn/windows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cstring>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/nn/row_kernels.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kGrain = 32768;  // elements that are worth a thread

// Calls visit(pixel of all images, image, row, column) for a grid of pixels, on libtorch's intra-op threads.
template <typename Visit>
void for_pixels(int64_t images, int64_t rows, int64_t columns, int64_t elements, Visit visit) {
  at::parallel_for(0, images * rows * columns, kGrain / elements + 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) visit(p, p / (rows * columns), p / columns % rows, p % columns);
  });
}

constexpr size_t kMostTaps = 128;

class Rows {
 public:
  void add(const uint16_t* row) { rows_[count_++] = row; }
  std::span<const uint16_t* const> all() const { return {rows_.data(), count_}; }

 private:
  std::array<const uint16_t*, kMostTaps> rows_;
  size_t count_ = 0;
};

// Calls visit(window of all images, tap) for each window that pixel (y, z) of image n lies in, by tap.
template <typename Visit>
void for_windows_of(int64_t n, int64_t y, int64_t z, at::IntArrayRef sizes, const WindowShape& shape, Visit visit) {
  const int64_t rows = shape.rows(sizes[2]), columns = shape.columns(sizes[3]);
  for (int64_t i = 0; i < shape.height; ++i) {
    const int64_t top = y + shape.padding - i, row = top / shape.stride;
    if (top < 0 || top % shape.stride != 0 || row >= rows) continue;
    for (int64_t j = 0; j < shape.width; ++j) {
      const int64_t left = z + shape.padding - j, column = left / shape.stride;
      if (left < 0 || left % shape.stride != 0 || column >= columns) continue;
      visit((n * rows + row) * columns + column, i * shape.width + j);
    }
  }
}

void check(const WindowShape& shape) {
  const int64_t taps = shape.height * shape.width;
  if (taps > static_cast<int64_t>(kMostTaps)) throw BugError("windows of ", taps, " pixels: at most ", kMostTaps);
}

}  // namespace

at::Tensor windows_of(const at::Tensor& x, const WindowShape& shape) {
  const int64_t channels = x.size(1), height = x.size(2), width = x.size(3);
  const int64_t rows = shape.rows(height), columns = shape.columns(width), taps = shape.height * shape.width;
  const at::Tensor result = at::empty({x.size(0) * rows * columns, taps * channels}, x.options());
  const auto* const from = static_cast<const uint16_t*>(x.const_data_ptr());
  auto* const to = static_cast<uint16_t*>(result.data_ptr());
  for_pixels(x.size(0), rows, columns, taps * channels, [&](int64_t p, int64_t n, int64_t row, int64_t column) {
    uint16_t* out = to + p * taps * channels;
    for (int64_t tap = 0; tap < taps; ++tap, out += channels) {
      const int64_t y = row * shape.stride - shape.padding + tap / shape.width;
      const int64_t z = column * shape.stride - shape.padding + tap % shape.width;
      const size_t bytes = static_cast<size_t>(channels) * sizeof(uint16_t);
      if (y >= 0 && y < height && z >= 0 && z < width) {
        std::memcpy(out, from + ((n * height + y) * width + z) * channels, bytes);
      } else {
        std::memset(out, 0, bytes);
      }
    }
  });
  return result;
}

at::Tensor sum_of_windows(const at::Tensor& windows, at::IntArrayRef sizes, const WindowShape& shape) {
  check(shape);
  const int64_t channels = sizes[1], taps = shape.height * shape.width;
  at::Tensor result = at::empty(sizes, windows.options().memory_format(at::MemoryFormat::ChannelsLast));
  const auto* const from = static_cast<const uint16_t*>(windows.const_data_ptr());
  auto* const to = static_cast<uint16_t*>(result.data_ptr());
  const bool brain = windows.scalar_type() == at::kBFloat16;
  for_pixels(sizes[0], sizes[2], sizes[3], taps * channels, [&](int64_t p, int64_t n, int64_t y, int64_t z) {
    Rows rows;
    for_windows_of(n, y, z, sizes, shape,
                   [&](int64_t window, int64_t tap) { rows.add(from + (window * taps + tap) * channels); });
    sum_rows(rows.all(), static_cast<size_t>(channels), brain, to + p * channels);
  });
  return result;
}

at::Tensor depthwise_input_gradient(const at::Tensor& dy, const at::Tensor& weight, at::IntArrayRef sizes,
                                    const WindowShape& shape) {
  check(shape);
  const int64_t channels = sizes[1], taps = shape.height * shape.width;
  at::Tensor result = at::empty(sizes, dy.options().memory_format(at::MemoryFormat::ChannelsLast));
  const at::Tensor by_tap = weight.detach().to(at::kFloat).reshape({channels, taps}).t().contiguous();
  const float* const scale = by_tap.const_data_ptr<float>();
  const auto* const from = static_cast<const uint16_t*>(dy.const_data_ptr());
  auto* const to = static_cast<uint16_t*>(result.data_ptr());
  const bool brain = dy.scalar_type() == at::kBFloat16;
  for_pixels(sizes[0], sizes[2], sizes[3], taps * channels, [&](int64_t p, int64_t n, int64_t y, int64_t z) {
    Rows rows;
    std::array<const float*, kMostTaps> scales;
    for_windows_of(n, y, z, sizes, shape, [&](int64_t window, int64_t tap) {
      scales[rows.all().size()] = scale + tap * channels;
      rows.add(from + window * channels);
    });
    sum_scaled_rows(rows.all(), std::span(scales.data(), rows.all().size()), static_cast<size_t>(channels), brain,
                    to + p * channels);
  });
  return result;
}

}  // namespace lockstep::nn
