// Vector kernels of the reduction, one source for every instruction set, chosen at run time (Highway).
#pragma once

#include <cstdint>

namespace lockstep::comm {

// How elements lie in memory. 16-bit types are computed in fp32 and rounded to nearest even. kWireHalf and kWireBrain
// are fp32 whose values are rounded to fp16 or bf16 when they are read and when they are written.
enum class Format { kFloat, kDouble, kHalf, kBrain, kWireHalf, kWireBrain };
enum class BinaryOp { kAdd, kMultiply, kMax, kMin };  // kMax and kMin are NaN if either value is

// out[k] = a[k] op b[k]. `out` may be `a` or `b`.
void combine(Format format, BinaryOp op, const void* a, const void* b, void* out, int64_t count);

// out[k] = in[k], as the format reads and writes it: rounds where that is a wire type. `out` may be `in`.
void copy_rounded(Format format, const void* in, void* out, int64_t count);

// out[k] = fp32(a[k]) + fp32(b[k]), and out[k] = fp32(in[k]): kHalf or kBrain read, fp32 written, elsewhere.
void add_widened(Format format, const void* a, const void* b, void* out, int64_t count);
void widen(Format format, const void* in, void* out, int64_t count);

// The sum of squares in fp64. The order of the additions depends on `count` alone, and a tail takes the vector path.
double square_sum_f32(const void* data, int64_t count);
double square_sum_f64(const void* data, int64_t count);
double square_sum_f16(const void* data, int64_t count);
double square_sum_bf16(const void* data, int64_t count);

}  // namespace lockstep::comm
