#include "lockstep/nn/batch_norm_passes.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "lockstep/nn/device_passes.h"
#include "lockstep/nn/norm_kernels.h"

namespace lockstep::nn {
namespace {

// x as a matrix of whole vectors. With few channels, some rows are joined into one, and `copies` of each channel become
// columns. All that decides the order of additions is a pure function of x's shape.
struct Matrix {
  explicit Matrix(const at::Tensor& x)
      : channels(x.size(1)), extent{element_of(x), static_cast<size_t>(x.numel() / channels), width(channels)} {
    const auto whole = [&] { return extent.columns % 16 == 0 && extent.columns >= 64; };
    for (; copies < 16 && extent.rows % 2 == 0 && !whole(); copies *= 2) {
      extent.rows /= 2;
      extent.columns *= 2;
    }
  }

  static size_t width(int64_t n) { return static_cast<size_t>(n); }
  static Element element_of(const at::Tensor& x) {
    if (x.scalar_type() == at::kFloat) return Element::kFloat;
    return x.scalar_type() == at::kBFloat16 ? Element::kBrain : Element::kHalf;
  }

  int64_t channels;
  Extent extent;
  int64_t copies = 1;
};

// The rows that one thread processes at a time: a few hundred KB.
constexpr size_t kPart = 1 << 16;  // elements
constexpr size_t kMostParts = 64;

size_t rows_of_part(const Extent& extent) {
  return std::max((extent.rows + kMostParts - 1) / kMostParts, kPart / extent.columns + 1);
}

// Calls visit(part, extent of the part, its first row) for each, on libtorch's intra-op threads.
template <typename Visit>
void for_parts(const Extent& extent, Visit visit) {
  const size_t step = rows_of_part(extent);
  const auto parts = static_cast<int64_t>((extent.rows + step - 1) / step);
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const size_t row = static_cast<size_t>(part) * step;
      visit(part, Extent{extent.element, std::min(step, extent.rows - row), extent.columns}, row);
    }
  });
}

// [2, C]: adds up what add(extent, first row, sums) gives for each part, in the order of the parts.
template <typename Add>
at::Tensor sums_of(const Matrix& matrix, Add add) {
  const size_t columns = matrix.extent.columns, step = rows_of_part(matrix.extent);
  const size_t parts = (matrix.extent.rows + step - 1) / step;
  std::vector<double> sums(parts * 2 * columns);
  for_parts(matrix.extent, [&](int64_t part, const Extent& extent, size_t row) {
    double* const first = sums.data() + static_cast<size_t>(part) * 2 * columns;
    add(extent, row, Sums{first, first + columns});
  });
  const at::Tensor result = at::zeros({2, matrix.channels}, at::kDouble);
  double* to = result.data_ptr<double>();
  const double* from = sums.data();
  const size_t channels = Matrix::width(matrix.channels);
  for (size_t part = 0; part < parts; ++part) {
    for (size_t which = 0; which < 2; ++which) {
      for (int64_t copy = 0; copy < matrix.copies; ++copy, from += channels) {
        for (size_t c = 0; c < channels; ++c) to[which * channels + c] += from[c];
      }
    }
  }
  return result;
}

// [rows, C] in fp64 -> [rows, columns] in fp32.
at::Tensor columns_of(const Matrix& matrix, const at::Tensor& of_channels) {
  const at::Tensor narrow = of_channels.to(at::kFloat);
  return matrix.copies == 1 ? narrow : narrow.repeat({1, matrix.copies});
}

Affine affine_of(const at::Tensor& columns) {
  const float* const from = columns.const_data_ptr<float>();
  const size_t width = Matrix::width(columns.size(1));
  return {from + kMean * width, from + kScale * width, from + kBias * width};
}

char* row_of(const at::Tensor& x, const Extent& extent, size_t row) {
  return static_cast<char*>(x.data_ptr()) + row * extent.columns * x.element_size();
}

Gradient gradient_of(const BackwardInputs& inputs, const Affine& affine, const Extent& extent, size_t row) {
  return {.dy = row_of(inputs.dy, extent, row),
          .x = row_of(inputs.x, extent, row),
          .y = inputs.y.defined() ? row_of(inputs.y, extent, row) : nullptr,
          .affine = affine,
          .activation = inputs.activation};
}

// [1, C]: a mean over rows from all over x. It is near the channels' means, so that the squares of x - shift lose no
// digits.
at::Tensor shift_of(const at::Tensor& x) {
  constexpr int64_t kSamples = 16;
  const int64_t channels = x.size(1), rows = x.numel() / channels, step = std::max<int64_t>(rows / kSamples, 1);
  const at::Tensor some = x.as_strided({std::min(rows, kSamples), channels}, {step * channels, 1});
  return some.to(at::kFloat).mean(0, true);
}

Moments moments_by_kernels(const at::Tensor& x) {
  const Matrix matrix(x);
  const at::Tensor shift = shift_of(x);
  const at::Tensor columns = columns_of(matrix, shift);
  const at::Tensor sums = sums_of(matrix, [&](const Extent& extent, size_t row, const Sums& to) {
    add_moments(extent, row_of(x, extent, row), columns.const_data_ptr<float>(), to);
  });
  const int64_t count = x.numel() / matrix.channels;
  const at::Tensor moments = at::empty_like(sums);
  const double* const sum = sums.const_data_ptr<double>();
  double* const mean = moments.data_ptr<double>();
  for (int64_t c = 0; c < matrix.channels; ++c) {
    const double offset = sum[c] / static_cast<double>(count);
    mean[c] = shift.const_data_ptr<float>()[c] + offset;
    mean[matrix.channels + c] = std::max(sum[matrix.channels + c] - offset * sum[c], 0.0);
  }
  return {at::full({1}, static_cast<double>(count), at::kDouble), moments[0], moments[1]};
}

at::Tensor normalised_by_kernels(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& affine,
                                 Activation activation) {
  const Matrix matrix(x);
  const at::Tensor columns = columns_of(matrix, affine);
  at::Tensor y = at::empty_like(x);
  for_parts(matrix.extent, [&](int64_t, const Extent& extent, size_t row) {
    normalise(extent, row_of(x, extent, row), residual.defined() ? row_of(residual, extent, row) : nullptr,
              affine_of(columns), activation, row_of(y, extent, row));
  });
  return y;
}

at::Tensor gradient_sums_by_kernels(const BackwardInputs& inputs, at::Tensor* masked) {
  const Matrix matrix(inputs.x);
  const at::Tensor columns = columns_of(matrix, inputs.affine);
  if (masked != nullptr) *masked = at::empty_like(inputs.x);
  return sums_of(matrix, [&](const Extent& extent, size_t row, const Sums& to) {
    add_gradient_sums(extent, gradient_of(inputs, affine_of(columns), extent, row),
                      masked == nullptr ? nullptr : row_of(*masked, extent, row), to);
  });
}

at::Tensor input_gradient_by_kernels(const BackwardInputs& inputs, const at::Tensor& line) {
  const Matrix matrix(inputs.x);
  const at::Tensor columns = columns_of(matrix, inputs.affine), lines = columns_of(matrix, line);
  const float* const slope = lines.const_data_ptr<float>();
  at::Tensor dx = at::empty_like(inputs.x);
  for_parts(matrix.extent, [&](int64_t, const Extent& extent, size_t row) {
    input_gradient(extent, gradient_of(inputs, affine_of(columns), extent, row), slope, slope + extent.columns,
                   row_of(dx, extent, row));
  });
  return dx;
}

// The passes without kernels: in fp64, with [C] viewed as [1, C, 1, …].
at::Tensor centred(const at::Tensor& x, const at::Tensor& affine) {
  return x.to(at::kDouble).sub(spread(affine[kMean], x));
}

at::Tensor before_activation(const at::Tensor& x, const at::Tensor& affine) {
  return centred(x, affine).mul_(spread(affine[kScale], x)).add_(spread(affine[kBias], x));
}

}  // namespace

at::Tensor spread(const at::Tensor& of_channels, const at::Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = -1;
  return of_channels.view(x.size(1) == 0 ? std::vector<int64_t>{0} : sizes);
}

std::vector<int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<int64_t> result = {0};
  for (int64_t d = 2; d < x.dim(); ++d) result.push_back(d);
  return result;
}

at::Tensor masked_gradient(const BackwardInputs& in) {
  const at::Tensor dy = in.dy.to(at::kDouble);
  if (in.activation == Activation::kNone) return dy;
  const at::Tensor z = in.y.defined() ? in.y : before_activation(in.x, in.affine);
  const at::Tensor flat = in.activation == Activation::kRelu ? z.le(0) : z.le(0).logical_or_(z.ge(6));
  return dy.masked_fill(flat, 0);
}

bool has_kernels(const at::Tensor& x) {
  const bool type = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  if (!x.is_cpu() || !type || x.numel() == 0) return false;
  if (x.dim() == 2) return x.is_contiguous();
  if (x.dim() == 4) return x.is_contiguous(at::MemoryFormat::ChannelsLast);
  return x.dim() == 5 && x.is_contiguous(at::MemoryFormat::ChannelsLast3d);
}

Moments no_moments(const at::Tensor& x) {
  const auto options = x.options().dtype(at::kDouble);
  const at::Tensor nothing = at::zeros({2, x.size(1)}, options);
  return {at::zeros({1}, options), nothing[0], nothing[1]};
}

Moments moments_of(const at::Tensor& x) {
  if (device::takes(x)) return device::moments_of(x);
  if (has_kernels(x)) return moments_by_kernels(x);
  if (x.numel() == 0) return no_moments(x);
  const at::Tensor count = at::full({1}, static_cast<double>(x.numel() / x.size(1)), at::kDouble);
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor mean = wide.mean(all_but_channels(x));
  return {count, mean, (wide - spread(mean, x)).square_().sum(all_but_channels(x))};
}

at::Tensor normalised(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& affine,
                      Activation activation) {
  if (device::takes(x)) return device::normalised(x, residual, affine, activation);
  if (has_kernels(x)) return normalised_by_kernels(x, residual, affine, activation);
  at::Tensor z = before_activation(x, affine);
  if (residual.defined()) z.add_(residual);
  if (activation == Activation::kRelu) z.relu_();
  if (activation == Activation::kRelu6) z.clamp_(0, 6);
  return at::empty_like(x).copy_(z);
}

at::Tensor gradient_sums(const BackwardInputs& inputs, at::Tensor* masked) {
  if (device::takes(inputs.x)) return device::gradient_sums(inputs, masked);
  if (has_kernels(inputs.x)) return gradient_sums_by_kernels(inputs, masked);
  const at::Tensor g = masked_gradient(inputs);
  if (masked != nullptr) *masked = at::empty_like(inputs.x).copy_(g);
  const auto others = all_but_channels(inputs.x);
  return at::stack({g.sum(others), g.mul(centred(inputs.x, inputs.affine)).sum(others)});
}

at::Tensor input_gradient(const BackwardInputs& inputs, const at::Tensor& line) {
  if (device::takes(inputs.x)) return device::input_gradient(inputs, line);
  if (has_kernels(inputs.x)) return input_gradient_by_kernels(inputs, line);
  const at::Tensor& x = inputs.x;
  const at::Tensor scaled = masked_gradient(inputs).mul(spread(inputs.affine[kScale], x));
  return at::empty_like(x).copy_(
      centred(x, inputs.affine).mul_(spread(line[0], x)).add_(spread(line[1], x)).add_(scaled));
}

}  // namespace lockstep::nn
