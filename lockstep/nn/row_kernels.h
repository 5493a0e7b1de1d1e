// The vector code of windows.h and conv2d.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::nn {

// out[i] = Σ rows[k][i], added in fp32 in their order and rounded once; 0 where there is no row. bf16, or else fp16, as
// their 16 bits.
void sum_rows(std::span<const uint16_t* const> rows, size_t count, bool brain, uint16_t* out);

// The same of rows[k][i] · scales[k][i].
void sum_scaled_rows(std::span<const uint16_t* const> rows, std::span<const float* const> scales, size_t count,
                     bool brain, uint16_t* out);

}  // namespace lockstep::nn
