// The kernels of a reduction: element by element over several ranks' memory, in the order of the fold's tree.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <span>

namespace lockstep::comm {

enum class ReduceOp { kSum, kMean, kMax, kMin, kProduct, kBitOr };

// The name that messages use: "sum", "mean", "max", "min", "product", "bitwise or"; "unknown" for anything else.
const char* name_of(ReduceOp op);

// Whether elements of this type can be reduced so: fp32, fp64, fp16, bf16 (all but bitwise or), the integers, and bool
// (max, min, bitwise or).
bool can_reduce(c10::ScalarType dtype, ReduceOp op);

// Elements are reduced, and square sums kept, by blocks of this many; a slice of a tensor begins and ends on one.
constexpr int64_t kBlockElements = 4096;

// target[k] = the reduction over sources of sources[…][k], for k < count <= kBlockElements. Each node of the tree adds
// fp16 and bf16 in fp32 and rounds to the dtype. The target may be one of the sources. kMean divides the sum by the
// number of sources (integers: rounded towards zero). kMax and kMin are NaN if one value is. With `wire` (kBFloat16 or
// kHalf, of fp32) every node is rounded to it, leaves included, also where there is one source.
void reduce_block(c10::ScalarType dtype, ReduceOp op, std::span<const void* const> sources, void* target, int64_t count,
                  std::optional<c10::ScalarType> wire = {});

// Values that one rank adds.
struct Source {
  const void* data;
  std::optional<c10::ScalarType> narrow = {};  // kBFloat16 or kHalf: they lie in it where the others are fp32
};
// The same; a narrow source can't be the target, and is widened without rounding.
void reduce_block(c10::ScalarType dtype, ReduceOp op, std::span<const Source> sources, void* target, int64_t count,
                  std::optional<c10::ScalarType> wire = {});

// The parts of it, for who gets values one at a time; any count.
// One node of the tree: out[k] = a[k] op b[k] (kMean: the sum). `out` may be `a` or `b`.
void combine_block(c10::ScalarType dtype, ReduceOp op, const void* a, const void* b, void* out, int64_t count,
                   std::optional<c10::ScalarType> wire = {});
// kMean's last step, in place.
void divide_block(c10::ScalarType dtype, void* data, int64_t divisor, int64_t count);
// A leaf: each value rounded to nearest even in `wire`, kBFloat16 or kHalf, in place.
void round_to_wire(c10::ScalarType wire, float* data, int64_t count);

// The sum of the squares of `count` floating-point elements, in fp64; not finite if and only if one of them isn't.
double square_sum(c10::ScalarType dtype, const void* data, int64_t count);

}  // namespace lockstep::comm
