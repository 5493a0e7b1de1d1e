// Vector kernels of the reduction, one source for every instruction set, chosen at run time (Highway).
#pragma once

#include <cstdint>

namespace lockstep::comm {

// out[k] = a[k] + b[k]; 16-bit types are added in fp32 and rounded to nearest even. `out` may be `a` or `b`.
void add_f32(const void* a, const void* b, void* out, int64_t count);
void add_f64(const void* a, const void* b, void* out, int64_t count);
void add_f16(const void* a, const void* b, void* out, int64_t count);
void add_bf16(const void* a, const void* b, void* out, int64_t count);

// The sum of squares in fp64. The order of the additions depends on `count` alone, and a tail takes the vector path.
double square_sum_f32(const void* data, int64_t count);
double square_sum_f64(const void* data, int64_t count);
double square_sum_f16(const void* data, int64_t count);
double square_sum_bf16(const void* data, int64_t count);

}  // namespace lockstep::comm
