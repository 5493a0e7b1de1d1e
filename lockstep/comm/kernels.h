// Vector kernels of the reduction. Highway compiles one source for every instruction set and chooses at run time.
#pragma once

#include <cstdint>

namespace lockstep::comm {

// The format of elements in memory. Arithmetic on 16-bit types is done in fp32 and rounded to nearest even. kWireHalf
// and kWireBrain are fp32 numbers, rounded to fp16 or bf16 when they are read and when they are written.
enum class Format { kFloat, kDouble, kHalf, kBrain, kWireHalf, kWireBrain };
enum class BinaryOp { kAdd, kMultiply, kMax, kMin };  // kMax and kMin are NaN if either value is

// out[k] = a[k] op b[k]. `out` may be `a` or `b`.
void combine(Format format, BinaryOp op, const void* a, const void* b, void* out, int64_t count);

// out[k] = in[k]; a wire format rounds the value. `out` may be `in`.
void copy_rounded(Format format, const void* in, void* out, int64_t count);

// add_widened: out[k] = fp32(a[k]) + fp32(b[k]). widen: out[k] = fp32(in[k]). The inputs are kHalf or kBrain, `out` is
// fp32 and does not overlap them.
void add_widened(Format format, const void* a, const void* b, void* out, int64_t count);
void widen(Format format, const void* in, void* out, int64_t count);

// The sum of squares, in fp64. The order of the additions depends on `count` alone: the tail takes the vector path too.
double square_sum_f32(const void* data, int64_t count);
double square_sum_f64(const void* data, int64_t count);
double square_sum_f16(const void* data, int64_t count);
double square_sum_bf16(const void* data, int64_t count);

}  // namespace lockstep::comm
