// The kernels of a reduction: element by element over several ranks' memory, in the order of the fold's tree.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <span>

namespace lockstep::comm {

enum class ReduceOp { kSum, kMean, kMax };

// The name that messages use: "sum", "mean", "max".
const char* name_of(ReduceOp op);

// Whether elements of this type can be reduced: fp32, fp64, fp16, bf16 and the integers (bool: max alone).
bool can_reduce(c10::ScalarType dtype, ReduceOp op);

// Elements are reduced, and square sums kept, by blocks of this many; a slice of a tensor begins and ends on one.
constexpr int64_t kBlockElements = 4096;

// target[k] = the reduction over sources of sources[…][k], for k < count <= kBlockElements. Each node of the tree adds
// fp16 and bf16 in fp32 and rounds to the dtype. The target may be one of the sources. kMean divides the sum by the
// number of sources (integers: rounded towards zero).
void reduce_block(c10::ScalarType dtype, ReduceOp op, std::span<const void* const> sources, void* target,
                  int64_t count);

// The sum of the squares of `count` floating-point elements, in fp64; not finite if and only if one of them isn't.
double square_sum(c10::ScalarType dtype, const void* data, int64_t count);

}  // namespace lockstep::comm
