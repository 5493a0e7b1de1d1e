// Images of other sizes, with gradients that repeat their bits. On a GPU libtorch adds up the gradients of pixels with
// atomics, in another order each time; there these are two products with matrices, one for each side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lockstep::models {

// Where the pixels of a larger image lie: the corners' centres on those of the smaller one, as in U-Net, or the edges
// on the edges, as images are resized.
enum class Aligned { kCorners, kEdges };

// [N, C, H, W] -> [N, C, 2·H, 2·W], bilinear.
at::Tensor upsample_twice(const at::Tensor& x, Aligned aligned = Aligned::kCorners);
at::Tensor upsample_twice_by_products(const at::Tensor& x, Aligned aligned = Aligned::kCorners);

// [N, C, H, W] -> [N, C, side, side], adaptive average pooling.
at::Tensor average_pool_to(const at::Tensor& x, int64_t side);
at::Tensor average_pool_by_products(const at::Tensor& x, int64_t side);

}  // namespace lockstep::models
