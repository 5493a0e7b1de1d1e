#include "lockstep/track/tensors/tensor_histogram.h"

#include <ATen/ATen.h>

#include <cmath>

namespace lockstep::track {
namespace {

template <typename T>
std::optional<Histogram> count(const T* values, int64_t size, double factor) {
  HistogramCounter counter;
  for (int64_t i = 0; i < size; ++i) {
    const double value = static_cast<double>(values[i]) * factor;
    if (!std::isfinite(value)) return std::nullopt;
    counter.add(value);
  }
  return counter.histogram();
}

}  // namespace

std::optional<Histogram> histogram_of(const at::Tensor& tensor, double factor) {
  if (tensor.numel() == 0) return std::nullopt;
  at::Tensor values = tensor.detach();
  if (values.is_sparse()) values = values.coalesce().values();
  const bool wide = values.scalar_type() == at::kDouble;
  values = values.to(at::kCPU, wide ? at::kDouble : at::kFloat);
  if (!values.is_non_overlapping_and_dense()) values = values.contiguous();
  return wide ? count(values.const_data_ptr<double>(), values.numel(), factor)
              : count(values.const_data_ptr<float>(), values.numel(), factor);
}

}  // namespace lockstep::track
