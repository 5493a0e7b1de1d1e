// The vector code of max_pool_relu.h, on plain arrays in channels_last order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::nn {

// The element of its window that an output came from: 0 to 3, row by row. kNone: the maximum was not positive.
using Origin = uint8_t;
constexpr Origin kNone = 4;

// One row of outputs, `pixels` of `channels` elements each, and the two rows of inputs that hold its windows; an odd
// last input pixel is not read. bf16 is passed as its 16 bits.
template <typename T>
struct PoolRow {
  T* top;
  T* bottom;
  T* output;
  Origin* origin;
  size_t pixels;
  size_t channels;
};

// The fewest channels that the kernels can take on this machine.
size_t least_channels();

// Forward: `output` and `origin` from `top` and `bottom`.
void pool_row(const PoolRow<float>& row);
void pool_row(const PoolRow<uint16_t>& row);

// Backward: the gradients of `top` and `bottom` from that of `output` and from `origin`.
void unpool_row(const PoolRow<float>& row);
void unpool_row(const PoolRow<uint16_t>& row);

}  // namespace lockstep::nn
