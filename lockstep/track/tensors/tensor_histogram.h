// Histograms of tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lockstep/track/histogram.h"

namespace lockstep::track {

// The histogram of a tensor's elements, each times `factor`. The tensor is of any shape, device and floating-point
// type; of a sparse one the stored elements count. Nothing for a tensor without elements, or with a NaN or an infinity.
std::optional<Histogram> histogram_of(const at::Tensor& tensor, double factor = 1);

}  // namespace lockstep::track
