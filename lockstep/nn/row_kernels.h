// The vector code of windows.h and conv2d.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::nn {

// out[i] = Σ rows[k][i], added in fp32 in their order and rounded once; 0 without rows. The elements are the 16 bits of
// bf16 (`brain`) or of fp16.
void sum_rows(std::span<const uint16_t* const> rows, size_t count, bool brain, uint16_t* out);

// out[i] = Σ rows[k][i] · scales[k][i], in the same way.
void sum_scaled_rows(std::span<const uint16_t* const> rows, std::span<const float* const> scales, size_t count,
                     bool brain, uint16_t* out);

}  // namespace lockstep::nn
