// Reduction of one block: the elements of several ranks' memory are combined in the order of the fold's tree.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::comm {

enum class ReduceOp { kSum, kMean, kMax, kMin, kProduct, kBitOr };

// The operator's name for messages: "sum", "mean", "max", "min", "product", "bitwise or"; "unknown" for any other
// value.
const char* name_of(ReduceOp op);

// The operator of a partial reduction: a mean is a sum, divided at the end by the number of all leaves.
constexpr ReduceOp partial(ReduceOp op) { return op == ReduceOp::kMean ? ReduceOp::kSum : op; }

// Whether `op` can reduce elements of this type: fp32, fp64, fp16 and bf16 (all but bitwise or), integers (all but the
// mean, which would be rounded), and bool (max, min, bitwise or).
bool can_reduce(c10::ScalarType dtype, ReduceOp op);

// The number of elements in a block, the unit of reductions, square sums and slices.
constexpr int64_t kBlockElements = 4096;

// The values of one leaf of the tree, or of a whole subtree that was reduced before: of the reduction's dtype or, where
// `narrow` is set, of that type in a reduction of fp32.
struct Source {
  const void* data;
  std::optional<c10::ScalarType> narrow = {};  // kBFloat16 or kHalf
  size_t leaves = 1;                           // of the subtree
};

// The memory in which a block's reduction keeps inner nodes of the tree: a block for each level, made when it is first
// needed. A caller keeps it from block to block. One thread.
class FoldScratch {
 public:
  static constexpr size_t kBlockBytes = kBlockElements * sizeof(double);
  // A block that is not in use, aligned to a cache line; it is in use from now on.
  void* take();
  // Ends the use of a block of take()'s; of any other address nothing.
  void release(const void* block);

 private:
  struct alignas(64) Block {
    std::array<std::byte, kBlockBytes> bytes;
  };
  std::vector<std::unique_ptr<Block>> blocks_;
  uint64_t used_ = 0;  // a bit for each
};

// Reduces a block: target[k] = the reduction of sources[0][k], sources[1][k], …, for k < count <= kBlockElements. The
// sources are in the tree's order. Each node of the tree adds fp16 and bf16 in fp32 and rounds to the dtype; narrow
// sources are widened without rounding. The target may be one of the sources, but no narrow one. kMean divides the sum
// by the number of leaves. kMax and kMin are NaN if one value is. `wire`, kBFloat16 or kHalf for dtype fp32, is the
// type to which every node is rounded, leaves included, even if there is only one source.
void reduce_block(c10::ScalarType dtype, ReduceOp op, std::span<const Source> sources, void* target, int64_t count,
                  FoldScratch& scratch, std::optional<c10::ScalarType> wire = {});

// The three steps of a reduction, for callers to whom values come one at a time. `count` may be any number.
// One node of the tree: out[k] = a[k] op b[k] (kMean: the sum). `out` may be `a` or `b`.
void combine_block(c10::ScalarType dtype, ReduceOp op, const void* a, const void* b, void* out, int64_t count,
                   std::optional<c10::ScalarType> wire = {});
// The last step of kMean: divides the elements in place.
void divide_block(c10::ScalarType dtype, void* data, int64_t divisor, int64_t count);
// One leaf: rounds each value in place to nearest even in `wire`, kBFloat16 or kHalf.
void round_to_wire(c10::ScalarType wire, float* data, int64_t count);

// The sum of the squares of `count` floating-point elements, in fp64. It is finite if and only if all elements are.
double square_sum(c10::ScalarType dtype, const void* data, int64_t count);

}  // namespace lockstep::comm
