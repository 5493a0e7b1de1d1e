#include "lockstep/comm/reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
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
    if constexpr (std::is_integral_v<T>) {
      x[i] = static_cast<T>(x[i] / divisor);
    } else if constexpr (std::is_same_v<T, double>) {
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

// Folds sources into `out` and returns the address of the result, which for a lone source is the source itself.
struct Tree {
  ScalarType dtype;
  ReduceOp op;
  std::optional<ScalarType> wire;
  int64_t count;

  const void* fold(std::span<const Source> sources, void* out, int depth) const {
    if (sources.size() == 1) return leaf(sources[0], out);
    if (sources.size() == 2 && op == ReduceOp::kSum && !wire && sources[0].narrow &&
        sources[0].narrow == sources[1].narrow) {
      add_widened(*format_of(*sources[0].narrow, {}), sources[0].data, sources[1].data, out, count);
      return out;
    }
    // One block of the widest type per level of the tree: 64 sources make 6 levels, each with a right part of its own.
    alignas(64) thread_local std::array<std::array<std::byte, kBlockElements * sizeof(double)>, 2 * 8> scratch;
    const size_t left = left_part(sources.size());
    const auto level = static_cast<size_t>(2 * depth);
    const void* a = fold(sources.first(left), scratch[level].data(), depth + 1);
    const void* b = fold(sources.subspan(left), scratch[level + 1].data(), depth + 1);
    combine_block(dtype, op, a, b, out, count, wire);
    return out;
  }

  const void* leaf(const Source& source, void* out) const {
    if (!source.narrow) return source.data;
    widen(*format_of(*source.narrow, {}), source.data, out, count);
    return out;
  }
};

}  // namespace

const char* name_of(ReduceOp op) {
  constexpr std::array<const char*, 6> kNames = {"sum", "mean", "max", "min", "product", "bitwise or"};
  const auto index = static_cast<size_t>(op);
  return index < kNames.size() ? kNames[index] : "unknown";
}

bool can_reduce(ScalarType dtype, ReduceOp op) {
  if (format_of(dtype, {})) return op != ReduceOp::kBitOr;
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
      with_integer(dtype, [&](auto type) { divide_elements<decltype(type)>(data, divisor, count); });
  }
}

void round_to_wire(ScalarType wire, float* data, int64_t count) {
  copy_rounded(*format_of(ScalarType::Float, wire), data, data, count);
}

void reduce_block(ScalarType dtype, ReduceOp op, std::span<const void* const> sources, void* target, int64_t count,
                  std::optional<ScalarType> wire) {
  std::vector<Source> all;
  all.reserve(sources.size());
  for (const void* data : sources) all.push_back({data});
  reduce_block(dtype, op, all, target, count, wire);
}

void reduce_block(ScalarType dtype, ReduceOp op, std::span<const Source> sources, void* target, int64_t count,
                  std::optional<ScalarType> wire) {
  if (!can_reduce(dtype, op) || count > kBlockElements || sources.empty() || sources.size() > 128) {
    throw BugError("reduce_block: ", name_of(op), " of ", count, " elements of ", c10::toString(dtype), " from ",
                   sources.size(), " sources");
  }
  const void* result = Tree{dtype, op, wire, count}.fold(sources, target, 0);
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
  if (op == ReduceOp::kMean) divide_block(dtype, target, static_cast<int64_t>(sources.size()), count);
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
