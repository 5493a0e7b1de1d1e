// fp16 and bf16 numbers to fp32, and back to the nearest (ties to even), as vector code.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstddef>

namespace lockstep::optim {

void widen(const at::Half* from, size_t size, float* to);
void widen(const at::BFloat16* from, size_t size, float* to);

// A NaN stays one.
void narrow(const float* from, size_t size, at::Half* to);
void narrow(const float* from, size_t size, at::BFloat16* to);

}  // namespace lockstep::optim
