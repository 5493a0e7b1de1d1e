#include "lockstep/parallel/packed_memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

constexpr int64_t kAlignment = 64;  // of each piece, in bytes

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// What becomes contiguous in the packed memory: a tensor, or several that overlap.
struct Piece {
  std::vector<size_t> members;  // ascending
  int64_t begin, end;           // addresses of the bytes
};

Piece piece_of(const std::vector<at::Tensor>& tensors, size_t index) {
  const at::Tensor& tensor = tensors[index];
  int64_t elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) elements += (tensor.size(i) - 1) * tensor.stride(i);
  const auto begin = static_cast<int64_t>(reinterpret_cast<intptr_t>(tensor.const_data_ptr()));
  return {.members = {index}, .begin = begin, .end = begin + elements * static_cast<int64_t>(tensor.element_size())};
}

// In the order of their first members, which is the same on all ranks; addresses are not.
std::vector<Piece> pieces_of(const std::vector<at::Tensor>& tensors) {
  std::vector<Piece> by_address, pieces;
  for (size_t i = 0; i < tensors.size(); ++i) by_address.push_back(piece_of(tensors, i));
  std::sort(by_address.begin(), by_address.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  for (Piece& piece : by_address) {
    if (pieces.empty() || piece.begin >= pieces.back().end) {
      pieces.push_back(std::move(piece));
    } else {
      pieces.back().members.push_back(piece.members[0]);
      pieces.back().end = std::max(pieces.back().end, piece.end);
    }
  }
  for (Piece& piece : pieces) std::sort(piece.members.begin(), piece.members.end());
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.members < b.members; });
  return pieces;
}

int64_t bytes_of(const Piece& piece, const std::vector<at::Tensor>& tensors) {
  return piece.members.size() > 1 ? piece.end - piece.begin : static_cast<int64_t>(tensors[piece.members[0]].nbytes());
}

at::Tensor bytes_at(const Piece& piece, const at::TensorOptions& options) {
  return at::from_blob(reinterpret_cast<void*>(piece.begin), {piece.end - piece.begin}, options);
}

// The tensor's place in a piece that begins at byte `first` of `all`.
at::Tensor part_of(const at::Tensor& all, int64_t first, const at::Tensor& tensor, const Piece& piece) {
  const at::Tensor part = at::empty({0}, tensor.options().requires_grad(false));
  const auto size = static_cast<int64_t>(tensor.element_size());
  if (piece.members.size() == 1) return part.set_(all.storage(), first / size, tensor.sizes());
  const int64_t offset = piece_of({tensor}, 0).begin - piece.begin;
  if (offset % size != 0) {
    throw ConfigError("DistributedDataParallel: buffers of two dtypes share memory, and the elements of one (",
                      tensor.toString(), ' ', tensor.sizes(), ") overlap those of the other in part; make one a copy");
  }
  return part.set_(all.storage(), (first + offset) / size, tensor.sizes(), tensor.strides());
}

}  // namespace

PackedMemory pack(const std::vector<at::Tensor>& tensors) {
  const c10::AutoGradMode no_grad(false);
  const std::vector<Piece> pieces = pieces_of(tensors);
  int64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += aligned(bytes_of(piece, tensors));
  PackedMemory packed{.all = at::zeros({bytes}, at::TensorOptions(at::kByte).device(tensors[0].device())),
                      .parts = std::vector<at::Tensor>(tensors.size())};
  int64_t first = 0;
  for (const Piece& piece : pieces) {
    for (const size_t member : piece.members) packed.parts[member] = part_of(packed.all, first, tensors[member], piece);
    if (piece.members.size() == 1) {
      packed.parts[piece.members[0]].copy_(tensors[piece.members[0]]);
    } else {
      packed.all.narrow(0, first, piece.end - piece.begin).copy_(bytes_at(piece, packed.all.options()));
    }
    first += aligned(bytes_of(piece, tensors));
  }
  return packed;
}

}  // namespace lockstep::parallel
