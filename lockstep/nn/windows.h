// Unfolds the windows of a convolution into the rows of a matrix (im2col) and folds them back, for 16-bit channels_last
// tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep::nn {

// Windows of height × width, `stride` apart, over images surrounded by `padding` zeros.
struct WindowShape {
  int64_t height, width, stride, padding;
  int64_t rows(int64_t image_rows) const { return (image_rows + 2 * padding - height) / stride + 1; }
  int64_t columns(int64_t image_columns) const { return (image_columns + 2 * padding - width) / stride + 1; }
};

// x: [N, C, H, W], channels_last, contiguous, bf16 or fp16 -> [N · rows · columns, height · width · C].
at::Tensor windows_of(const at::Tensor& x, const WindowShape& shape);

// The adjoint of windows_of: each pixel is the sum over the windows that it lies in, added in fp32 in their order and
// rounded once. -> [N, C, H, W], channels_last, of the sizes given.
at::Tensor sum_of_windows(const at::Tensor& windows, at::IntArrayRef sizes, const WindowShape& shape);

// The input gradient, of the sizes given, of a depthwise convolution. dy: [N, C, rows, columns], channels_last,
// contiguous, bf16 or fp16; weight: [C, 1, k, k'] of any floating-point type. Sums are added in fp32 and rounded once.
at::Tensor depthwise_input_gradient(const at::Tensor& dy, const at::Tensor& weight, at::IntArrayRef sizes,
                                    const WindowShape& shape);

}  // namespace lockstep::nn
