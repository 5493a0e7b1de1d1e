#include "lockstep/comm/reduce.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/kernels.h"

namespace lockstep::comm {
namespace {

using c10::ScalarType;
using BinaryKernel = void (*)(const void* a, const void* b, void* out, int64_t count);
using UnaryKernel = void (*)(void* data, double factor, int64_t count);

template <typename T>
void add_plain(const void* a, const void* b, void* out, int64_t count) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  auto* z = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) z[i] = static_cast<T>(x[i] + y[i]);
}

// NaN if either is.
template <typename T>
void max_plain(const void* a, const void* b, void* out, int64_t count) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  auto* z = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) z[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
}

template <typename T>
void divide_plain(void* data, double divisor, int64_t count) {
  auto* x = static_cast<T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      x[i] = static_cast<T>(x[i] / static_cast<int64_t>(divisor));
    } else if constexpr (std::is_same_v<T, double>) {
      x[i] /= divisor;
    } else {
      x[i] = static_cast<T>(static_cast<float>(x[i]) / static_cast<float>(divisor));
    }
  }
}

struct Kernels {
  BinaryKernel add = nullptr;
  BinaryKernel max = nullptr;
  UnaryKernel divide = nullptr;
};

template <typename T>
Kernels plain() {
  return {&add_plain<T>, &max_plain<T>, &divide_plain<T>};
}

Kernels kernels_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float:
      return {&add_f32, &max_plain<float>, &divide_plain<float>};
    case ScalarType::Double:
      return {&add_f64, &max_plain<double>, &divide_plain<double>};
    case ScalarType::Half:
      return {&add_f16, &max_plain<c10::Half>, &divide_plain<c10::Half>};
    case ScalarType::BFloat16:
      return {&add_bf16, &max_plain<c10::BFloat16>, &divide_plain<c10::BFloat16>};
    case ScalarType::Char:
      return plain<int8_t>();
    case ScalarType::Byte:
      return plain<uint8_t>();
    case ScalarType::Short:
      return plain<int16_t>();
    case ScalarType::Int:
      return plain<int32_t>();
    case ScalarType::Long:
      return plain<int64_t>();
    case ScalarType::Bool:
      return {nullptr, &max_plain<uint8_t>, nullptr};
    default:
      return {};
  }
}

// Folds sources[0, n) into `scratch` and returns where the result lies: a lone source lies where it is.
struct Tree {
  BinaryKernel combine;
  int64_t count;

  const void* fold(std::span<const void* const> sources, void* out, int depth) const {
    if (sources.size() == 1) return sources[0];
    // One block of the widest type per level of the tree: 64 sources make 6 levels, each with a right part of its own.
    alignas(64) thread_local std::array<std::array<std::byte, kBlockElements * sizeof(double)>, 2 * 8> scratch;
    const size_t left = left_part(sources.size());
    const auto level = static_cast<size_t>(2 * depth);
    const void* a = fold(sources.first(left), scratch[level].data(), depth + 1);
    const void* b = fold(sources.subspan(left), scratch[level + 1].data(), depth + 1);
    combine(a, b, out, count);
    return out;
  }
};

}  // namespace

const char* name_of(ReduceOp op) {
  constexpr std::array<const char*, 3> kNames = {"sum", "mean", "max"};
  return kNames[static_cast<size_t>(op)];
}

bool can_reduce(ScalarType dtype, ReduceOp op) {
  const Kernels kernels = kernels_of(dtype);
  return op == ReduceOp::kMax ? kernels.max != nullptr : kernels.add != nullptr;
}

void reduce_block(ScalarType dtype, ReduceOp op, std::span<const void* const> sources, void* target, int64_t count) {
  if (!can_reduce(dtype, op) || count > kBlockElements || sources.empty() || sources.size() > 128) {
    throw BugError("reduce_block: ", name_of(op), " of ", count, " elements of ", c10::toString(dtype), " from ",
                   sources.size(), " sources");
  }
  const Kernels kernels = kernels_of(dtype);
  const Tree tree{op == ReduceOp::kMax ? kernels.max : kernels.add, count};
  const void* result = tree.fold(sources, target, 0);
  if (result != target)
    std::copy_n(static_cast<const std::byte*>(result), count * static_cast<int64_t>(c10::elementSize(dtype)),
                static_cast<std::byte*>(target));
  if (op == ReduceOp::kMean) kernels.divide(target, static_cast<double>(sources.size()), count);
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
