#include "lockstep/comm/flat_fold.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <bit>

#include "lockstep/comm/reduce.h"
#include "lockstep/comm/square_sums.h"
#include "lockstep/comm/tensor_bytes.h"

namespace lockstep::comm {
namespace {

template <typename From, typename To>
void convert(const void* from, void* to, int64_t count) {
  const auto* source = static_cast<const From*>(from);
  std::transform(source, source + count, static_cast<To*>(to), [](From value) { return static_cast<To>(value); });
}

// The kernels that round the tree's nodes do the rounding here, so that even a NaN has the same bits on any backend.
void to_bf16(const void* from, void* to, int64_t count) {
  std::array<float, kBlockElements> block;
  const auto* source = static_cast<const float*>(from);
  auto* bits = static_cast<uint16_t*>(to);
  for (int64_t first = 0; first < count; first += kBlockElements) {
    const int64_t n = std::min(kBlockElements, count - first);
    std::copy_n(source + first, n, block.begin());
    round_to_wire(at::kBFloat16, block.data(), n);
    std::transform(block.begin(), block.begin() + n, bits + first,
                   [](float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); });
  }
}

// Copies between a tensor's memory and its part of the row, converting between `type` and `wire`.
void copy(bool in, at::ScalarType type, at::ScalarType wire, std::byte* tensor, std::byte* row, int64_t count) {
  const std::byte* from = in ? tensor : row;
  std::byte* to = in ? row : tensor;
  if (type == wire) {
    std::copy_n(from, static_cast<size_t>(count) * c10::elementSize(type), to);
  } else if (wire == at::kBFloat16) {
    in ? to_bf16(from, to, count) : convert<c10::BFloat16, float>(from, to, count);
  } else {
    in ? convert<float, c10::Half>(from, to, count) : convert<c10::Half, float>(from, to, count);
  }
}

// Calls visit(tensor's memory, its part of the row, elements) for each tensor.
template <typename Visit>
void for_each(const Call& call, const at::Tensor& row, Visit&& visit) {
  std::byte* to = data_of(row);
  for (const auto& tensor : call.tensors) {
    visit(data_of(tensor), to, tensor.numel());
    to += static_cast<size_t>(tensor.numel()) * row.element_size();
  }
}

// Whether each tensor's memory begins where that of the one before it ends.
bool side_by_side(const std::vector<at::Tensor>& tensors) {
  const std::byte* end = data_of(tensors[0]);
  for (const auto& tensor : tensors) {
    if (data_of(tensor) != end) return false;
    end += tensor.nbytes();
  }
  return true;
}

}  // namespace

void to_wire(const at::Tensor& values, const at::Tensor& wire) {
  copy(true, at::kFloat, wire.scalar_type(), data_of(values), data_of(wire), values.numel());
}

void from_wire(const at::Tensor& wire, const at::Tensor& values) {
  copy(false, at::kFloat, wire.scalar_type(), data_of(values), data_of(wire), values.numel());
}

FlatFold::FlatFold(const Call& call) : call_(call) {
  const at::ScalarType type = call.tensors[0].scalar_type(), wire = call.fold.wire.value_or(type);
  int64_t elements = 0;
  for (const auto& tensor : call.tensors) elements += tensor.numel();
  copied_ = wire != type || !side_by_side(call.tensors);
  if (!copied_) {
    values_ = at::from_blob(data_of(call.tensors[0]), {elements}, type);
    return;
  }
  values_ = at::empty({elements}, wire);
  for_each(call, values_,
           [&](std::byte* tensor, std::byte* row, int64_t n) { copy(true, type, wire, tensor, row, n); });
}

void FlatFold::finish() const {
  if (copied_) {
    const at::ScalarType type = call_.tensors[0].scalar_type(), wire = values_.scalar_type();
    for_each(call_, values_,
             [&](std::byte* tensor, std::byte* row, int64_t n) { copy(false, type, wire, tensor, row, n); });
  }
  if (call_.fold.square_sums.defined()) take_square_sums(call_.tensors, call_.fold.square_sums);
}

}  // namespace lockstep::comm
