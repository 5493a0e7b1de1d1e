#include "lockstep/comm/reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/kernels.h"

namespace lockstep::comm {
namespace {

using c10::ScalarType;

// The vector kernels' format for this type; nothing for integers.
std::optional<Format> format_of(ScalarType dtype, std::optional<ScalarType> wire) {
  switch (dtype) {
    case ScalarType::Float:
      if (!wire) return Format::kFloat;
      return *wire == ScalarType::Half ? Format::kWireHalf : Format::kWireBrain;
    case ScalarType::Double:
      return Format::kDouble;
    case ScalarType::Half:
      return Format::kHalf;
    case ScalarType::BFloat16:
      return Format::kBrain;
    default:
      return std::nullopt;
  }
}

BinaryOp binary_op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
      return BinaryOp::kMax;
    case ReduceOp::kMin:
      return BinaryOp::kMin;
    case ReduceOp::kProduct:
      return BinaryOp::kMultiply;
    default:
      return BinaryOp::kAdd;
  }
}

// Integers wrap around, as libtorch's do.
template <typename T>
void combine_integers(ReduceOp op, const void* a, const void* b, void* out, int64_t count) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  auto* z = static_cast<T*>(out);
  const auto each = [&](auto&& node) {
    for (int64_t i = 0; i < count; ++i)
      z[i] = static_cast<T>(node(static_cast<uint64_t>(x[i]), static_cast<uint64_t>(y[i])));
  };
  switch (op) {
    case ReduceOp::kMax:
      for (int64_t i = 0; i < count; ++i) z[i] = std::max(x[i], y[i]);
      return;
    case ReduceOp::kMin:
      for (int64_t i = 0; i < count; ++i) z[i] = std::min(x[i], y[i]);
      return;
    case ReduceOp::kProduct:
      return each([](uint64_t p, uint64_t q) { return p * q; });
    case ReduceOp::kBitOr:
      return each([](uint64_t p, uint64_t q) { return p | q; });
    default:
      return each([](uint64_t p, uint64_t q) { return p + q; });
  }
}

template <typename T>
void divide_elements(void* data, int64_t divisor, int64_t count) {
  auto* x = static_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, double>) {
      x[i] /= static_cast<double>(divisor);
    } else {
      x[i] = static_cast<T>(static_cast<float>(x[i]) / static_cast<float>(divisor));
    }
  }
}

// Calls act(T()) with the integer type of this dtype.
template <typename Act>
void with_integer(ScalarType dtype, Act&& act) {
  switch (dtype) {
    case ScalarType::Char:
      return act(int8_t());
    case ScalarType::Short:
      return act(int16_t());
    case ScalarType::Int:
      return act(int32_t());
    case ScalarType::Long:
      return act(int64_t());
    default:
      return act(uint8_t());  // Byte and Bool
  }
}

// The fold of one block. The root of the tree goes to the target at once; any other node goes to the place of one of
// its parts if that is scratch memory.
class BlockFold {
 public:
  BlockFold(ScalarType dtype, ReduceOp op, std::optional<ScalarType> wire, int64_t count, void* target,
            FoldScratch& scratch)
      : dtype_(dtype), op_(op), wire_(wire), count_(count), target_(target), scratch_(scratch) {}

  // Returns the address of the result: the target or, for a lone source of the dtype, the source itself.
  const void* operator()(std::span<const Source> sources) {
    for (const Source& source : sources) leaves_ += source.leaves;
    const auto add = [this](const Value& a, const Value& b) { return node(a, b); };
    LeafFold<Value> fold;
    for (const Source& source : sources) {
      fold.push({source.data, source.narrow, nullptr, source.leaves}, add, source.leaves);
    }
    const Value whole = fold.finish(add);
    if (!whole.narrow) return whole.data;
    widen(*format_of(*whole.narrow, {}), whole.data, target_, count_);
    return target_;
  }

 private:
  struct Value {
    const void* data;
    std::optional<ScalarType> narrow;  // not widened yet
    void* scratch;                     // null, or `data` in scratch memory
    size_t leaves;
  };

  Value node(Value a, Value b) {
    const bool is_root = a.leaves + b.leaves == leaves_;
    if (op_ == ReduceOp::kSum && !wire_ && a.narrow && a.narrow == b.narrow) {
      void* const out = is_root ? target_ : scratch_.take();
      add_widened(*format_of(*a.narrow, {}), a.data, b.data, out, count_);
      return {out, {}, is_root ? nullptr : out, a.leaves + b.leaves};
    }
    widen_value(a);
    widen_value(b);
    void* const place = a.scratch != nullptr ? a.scratch : b.scratch;
    void* const out = is_root ? target_ : place != nullptr ? place : scratch_.take();
    combine_block(dtype_, op_, a.data, b.data, out, count_, wire_);
    if (a.scratch != out) scratch_.release(a.scratch);
    if (b.scratch != out) scratch_.release(b.scratch);
    return {out, {}, is_root ? nullptr : out, a.leaves + b.leaves};
  }

  void widen_value(Value& value) {
    if (!value.narrow) return;
    value.scratch = scratch_.take();
    widen(*format_of(*value.narrow, {}), value.data, value.scratch, count_);
    value.data = value.scratch;
    value.narrow.reset();
  }

  ScalarType dtype_;
  ReduceOp op_;
  std::optional<ScalarType> wire_;
  int64_t count_;
  void* target_;
  FoldScratch& scratch_;
  size_t leaves_ = 0;
};

}  // namespace

const char* name_of(ReduceOp op) {
  constexpr std::array<const char*, 6> kNames = {"sum", "mean", "max", "min", "product", "bitwise or"};
  const auto index = static_cast<size_t>(op);
  return index < kNames.size() ? kNames[index] : "unknown";
}

bool can_reduce(ScalarType dtype, ReduceOp op) {
  if (format_of(dtype, {})) return op != ReduceOp::kBitOr;
  if (op == ReduceOp::kMean) return false;
  if (dtype == ScalarType::Bool) return op == ReduceOp::kMax || op == ReduceOp::kMin || op == ReduceOp::kBitOr;
  return dtype == ScalarType::Char || dtype == ScalarType::Byte || dtype == ScalarType::Short ||
         dtype == ScalarType::Int || dtype == ScalarType::Long;
}

void combine_block(ScalarType dtype, ReduceOp op, const void* a, const void* b, void* out, int64_t count,
                   std::optional<ScalarType> wire) {
  // Leaves come unrounded; rounding what is rounded already changes nothing, so one kernel serves all nodes.
  if (const auto format = format_of(dtype, wire)) return combine(*format, binary_op_of(op), a, b, out, count);
  with_integer(dtype, [&](auto type) { combine_integers<decltype(type)>(op, a, b, out, count); });
}

void divide_block(ScalarType dtype, void* data, int64_t divisor, int64_t count) {
  switch (dtype) {
    case ScalarType::Float:
      return divide_elements<float>(data, divisor, count);
    case ScalarType::Double:
      return divide_elements<double>(data, divisor, count);
    case ScalarType::Half:
      return divide_elements<c10::Half>(data, divisor, count);
    case ScalarType::BFloat16:
      return divide_elements<c10::BFloat16>(data, divisor, count);
    default:
      throw BugError("the mean of ", c10::toString(dtype));
  }
}

void round_to_wire(ScalarType wire, float* data, int64_t count) {
  copy_rounded(*format_of(ScalarType::Float, wire), data, data, count);
}

void* FoldScratch::take() {
  const auto index = static_cast<size_t>(std::countr_one(used_));
  if (index == blocks_.size()) blocks_.push_back(std::make_unique_for_overwrite<Block>());
  used_ |= uint64_t{1} << index;
  return blocks_[index]->bytes.data();
}

void FoldScratch::release(const void* block) {
  for (size_t index = 0; index < blocks_.size(); ++index) {
    if (blocks_[index]->bytes.data() == block) used_ &= ~(uint64_t{1} << index);
  }
}

void reduce_block(ScalarType dtype, ReduceOp op, std::span<const Source> sources, void* target, int64_t count,
                  FoldScratch& scratch, std::optional<ScalarType> wire) {
  if (!can_reduce(dtype, op) || count > kBlockElements || sources.empty()) {
    throw BugError("reduce_block: ", name_of(op), " of ", count, " elements of ", c10::toString(dtype), " from ",
                   sources.size(), " sources");
  }
  const void* result = BlockFold(dtype, op, wire, count, target, scratch)(sources);
  if (result != target) {
    const auto format = format_of(dtype, wire);
    if (format) {
      copy_rounded(*format, result, target, count);
    } else {
      std::memmove(target, result, static_cast<size_t>(count) * c10::elementSize(dtype));
    }
  } else if (wire && sources.size() == 1) {
    round_to_wire(*wire, static_cast<float*>(target), count);
  }
  if (op != ReduceOp::kMean) return;
  size_t leaves = 0;
  for (const Source& source : sources) leaves += source.leaves;
  divide_block(dtype, target, static_cast<int64_t>(leaves), count);
}

double square_sum(ScalarType dtype, const void* data, int64_t count) {
  switch (dtype) {
    case ScalarType::Float:
      return square_sum_f32(data, count);
    case ScalarType::Double:
      return square_sum_f64(data, count);
    case ScalarType::Half:
      return square_sum_f16(data, count);
    case ScalarType::BFloat16:
      return square_sum_bf16(data, count);
    default:
      throw BugError("square_sum of ", c10::toString(dtype));
  }
}

}  // namespace lockstep::comm
