// Images of other sizes, with gradients that repeat their bits. On a GPU libtorch adds up the gradients of pixels with
// atomics, in another order each time; there these are two products with matrices, one for each side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep::models {

// [N, C, H, W] -> [N, C, 2·H, 2·W], bilinear with aligned corners.
at::Tensor upsample_twice(const at::Tensor& x);
at::Tensor upsample_twice_by_products(const at::Tensor& x);

// [N, C, H, W] -> [N, C, side, side], adaptive average pooling.
at::Tensor average_pool_to(const at::Tensor& x, int64_t side);
at::Tensor average_pool_by_products(const at::Tensor& x, int64_t side);

}  // namespace lockstep::models
