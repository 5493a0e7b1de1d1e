#include "lockstep/comm/call.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/square_sums.h"

namespace lockstep::comm {
namespace {

bool reduces(OpKind kind) {
  return kind == OpKind::kFold || kind == OpKind::kAllReduce || kind == OpKind::kReduce ||
         kind == OpKind::kReduceScatter;
}

bool has_root(OpKind kind) {
  return kind == OpKind::kReduce || kind == OpKind::kBroadcast || kind == OpKind::kGather || kind == OpKind::kScatter;
}

const at::Tensor& any_tensor(const Call& call) {
  if (call.kind == OpKind::kFold) return call.tensors.at(0);
  return call.input.defined() ? call.input : call.output;
}

// Whether the call combines the ranks' tensors element by element or row by row, so that all must have one shape.
bool needs_one_shape(const Call& call) {
  if (call.uneven) return false;
  return (reduces(call.kind) && call.kind != OpKind::kFold) || call.kind == OpKind::kAllGather ||
         call.kind == OpKind::kGather || call.kind == OpKind::kAllToAll;
}

void set_shape(Signature& signature, at::IntArrayRef sizes) {
  signature.sizes_hash = kFnvSeed;
  for (const int64_t size : sizes) signature.sizes_hash = fnv1a(signature.sizes_hash, static_cast<uint64_t>(size));
  if (sizes.size() > Signature::kMostDims) return;
  signature.dims = static_cast<int32_t>(sizes.size());
  std::transform(sizes.begin(), sizes.end(), signature.sizes.begin(),
                 [](int64_t size) { return static_cast<uint32_t>(std::min<int64_t>(size, UINT32_MAX)); });
}

// Adds the sizes and the layout in memory, for a fold adds what lies at the same place. The stride of a dimension of
// one element says nothing about the layout.
uint64_t hash_layout(uint64_t hash, const at::Tensor& tensor) {
  hash = fnv1a(hash, static_cast<uint64_t>(tensor.dim()));
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    hash = fnv1a(hash, static_cast<uint64_t>(tensor.size(i)));
    if (tensor.numel() > 1 && tensor.size(i) > 1) hash = fnv1a(hash, static_cast<uint64_t>(tensor.stride(i)));
  }
  return hash;
}

// "[64]", "[2, 3]"; "" where ranks may differ.
std::string shape_text(const Signature& signature) {
  if (signature.dims < 0) return signature.elements < 0 ? "" : cat(" [", signature.elements, ']');
  std::string text;
  for (int32_t i = 0; i < std::min(signature.dims, Signature::kMostDims); ++i) {
    text += cat(i == 0 ? "" : ", ", signature.sizes[static_cast<size_t>(i)]);
  }
  return cat(" [", text, ']');
}

// The number of elements that is the same on every rank: those that a rank brings or, in a scatter, gets.
int64_t elements_of(const Call& call) {
  if (call.uneven) return -1;
  if (call.kind == OpKind::kBarrier) return 0;
  if (call.kind == OpKind::kScatter || call.kind == OpKind::kBroadcast) return call.output.numel();
  return call.input.defined() ? call.input.numel() : call.output.numel();
}

std::vector<int64_t> even(int64_t elements, int size) {
  return std::vector<int64_t>(static_cast<size_t>(size), elements / std::max(1, size));
}

void check_reducible(const Call& call, const at::Tensor& tensor) {
  if (call.op == ReduceOp::kMean && c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true)) {
    throw ConfigError(name_of(call.kind), ": the mean of a ", tensor.toString(),
                      " would be rounded; take the sum, or convert the tensor to a floating-point type");
  }
  if (tensor.is_sparse() || !can_reduce(tensor.scalar_type(), call.op)) {
    throw BugError(name_of(call.kind), ": can't take the ", name_of(call.op), " of a ", tensor.toString());
  }
}

bool is_narrow(at::ScalarType type) { return type == at::kBFloat16 || type == at::kHalf; }

void check_leaves(const Call& call) {
  if (call.fold.leaves.size() != call.tensors.size() || call.fold.wire) {
    throw BugError("fold: one leaf for each tensor, and no other type on the wire");
  }
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const at::Tensor &leaf = call.fold.leaves[i], &tensor = call.tensors[i];
    if (!leaf.defined()) continue;
    if (!is_narrow(leaf.scalar_type()) || tensor.scalar_type() != at::kFloat || leaf.sizes() != tensor.sizes() ||
        leaf.strides() != tensor.strides()) {
      throw BugError("fold: a leaf is bf16 or fp16, its tensor fp32, and their sizes and strides the same");
    }
  }
}

void check_fold(const Call& call) {
  if (call.tensors.empty()) throw BugError("fold: no tensors");
  int64_t count = 0;
  for (const auto& tensor : call.tensors) {
    check_reducible(call, tensor);
    if (!tensor.is_non_overlapping_and_dense() || tensor.scalar_type() != call.tensors[0].scalar_type()) {
      throw BugError("fold: tensors must be dense and of one dtype");
    }
    count += square_sum_count(tensor.numel(), tensor.device());
  }
  const auto& sums = call.fold.square_sums;
  if (sums.defined() && (sums.scalar_type() != at::kDouble || sums.numel() != count || !sums.is_contiguous())) {
    throw BugError("fold: square_sums must be contiguous, fp64 and of ", count, " elements");
  }
  if (sums.defined() && !call.tensors[0].is_floating_point()) throw BugError("fold: no square sums of integers");
  if (!call.fold.leaves.empty()) check_leaves(call);
  if (call.fold.wire && (call.tensors[0].scalar_type() != at::kFloat || !is_narrow(*call.fold.wire))) {
    throw BugError("fold: only fp32 tensors travel as another type, bf16 or fp16");
  }
}

void check_counts(const Call& call, const char* side, const std::vector<int64_t>& counts, const at::Tensor& tensor,
                  int size) {
  const bool negative = std::any_of(counts.begin(), counts.end(), [](int64_t n) { return n < 0; });
  if (counts.size() != static_cast<size_t>(size) || negative || !tensor.defined() ||
      std::accumulate(counts.begin(), counts.end(), int64_t{0}) != tensor.numel()) {
    throw BugError(name_of(call.kind), ": the ", side, " counts must be ", size, " and add up to the tensor's ",
                   tensor.defined() ? tensor.numel() : 0, " elements");
  }
}

void check_rows(const Call& call, const at::Tensor& rows, int size) {
  if (rows.defined() && (rows.dim() < 1 || rows.size(0) != size)) {
    throw BugError(name_of(call.kind), ": the first dimension must be the number of ranks, ", size);
  }
}

void check_equal(const Call& call, int64_t elements, int64_t expected) {
  if (elements == expected) return;
  throw BugError(name_of(call.kind), ": a tensor has ", elements, " elements where ", expected, " are expected");
}

// Checks that input and output have equal sizes, or as many rows as there are ranks.
void check_sizes(const Call& call, int size) {
  const int64_t in = call.input.defined() ? call.input.numel() : 0,
                out = call.output.defined() ? call.output.numel() : 0;
  switch (call.kind) {
    case OpKind::kAllReduce:
    case OpKind::kReduce:
    case OpKind::kBroadcast:
      return check_equal(call, out, in);
    case OpKind::kReduceScatter:
      check_rows(call, call.input, size);
      return check_equal(call, in, size * out);
    case OpKind::kAllGather:
      check_counts(call, "receive", call.receive_counts, call.output, size);
      return call.uneven ? void() : check_equal(call, out, size * in);
    case OpKind::kAllToAll:
      check_counts(call, "send", call.send_counts, call.input, size);
      return check_counts(call, "receive", call.receive_counts, call.output, size);
    case OpKind::kGather:
      if (!call.output.defined()) return;
      check_counts(call, "receive", call.receive_counts, call.output, size);
      return call.uneven ? void() : check_equal(call, out, size * in);
    case OpKind::kScatter:
      if (!call.input.defined()) return;
      check_counts(call, "send", call.send_counts, call.input, size);
      return call.uneven ? void() : check_equal(call, in, size * out);
    default:
      return;
  }
}

}  // namespace

const char* name_of(OpKind kind) {
  constexpr std::array<const char*, 12> kNames = {"fold",       "all_reduce",     "reduce",     "broadcast",
                                                  "all_gather", "reduce_scatter", "all_to_all", "gather",
                                                  "scatter",    "send",           "receive",    "barrier"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

bool Signature::operator==(const Signature& other) const {
  return kind == other.kind && dtype == other.dtype && detail == other.detail && tensors == other.tensors &&
         elements == other.elements && sizes_hash == other.sizes_hash;
}

uint64_t Signature::hash() const {
  uint64_t hash = fnv1a(kFnvSeed, static_cast<uint64_t>(kind));
  for (const uint64_t value : {uint64_t{dtype}, uint64_t{detail}, uint64_t{tensors}, static_cast<uint64_t>(elements)}) {
    hash = fnv1a(hash, value);
  }
  return fnv1a(hash, sizes_hash);
}

Signature signature_of(const Call& call) {
  Signature signature{.kind = call.kind, .dtype = 0, .detail = 0, .tensors = 1, .elements = 0, .sizes_hash = 0};
  if (call.kind == OpKind::kBarrier) return signature;
  signature.dtype = static_cast<uint32_t>(any_tensor(call).scalar_type());
  if (call.kind != OpKind::kFold) {
    signature.elements = elements_of(call);
    if (needs_one_shape(call)) set_shape(signature, any_tensor(call).sizes());
    // In an uneven all_gather every rank passes the counts of all ranks, so they must agree.
    for (const int64_t n :
         call.kind == OpKind::kAllGather && call.uneven ? call.receive_counts : std::vector<int64_t>{}) {
      signature.sizes_hash = fnv1a(signature.sizes_hash, static_cast<uint64_t>(n));
    }
    signature.detail = static_cast<uint32_t>(has_root(call.kind) ? call.peer : 0);
    if (reduces(call.kind)) signature.detail = signature.detail * 16 + static_cast<uint32_t>(call.op);
    return signature;
  }
  signature.tensors = static_cast<uint32_t>(call.tensors.size());
  signature.detail =
      (call.fold.wire ? 2 * static_cast<uint32_t>(*call.fold.wire) : 0) + (call.fold.square_sums.defined() ? 1 : 0);
  signature.sizes_hash = kFnvSeed;
  for (const auto& tensor : call.tensors) {
    signature.elements += tensor.numel();
    signature.sizes_hash = hash_layout(signature.sizes_hash, tensor);
  }
  signature.sizes_hash = fnv1a(signature.sizes_hash, call.fold.label);
  signature.sizes_hash = fnv1a(signature.sizes_hash, call.fold.step);
  return signature;
}

std::string text_of(const Signature& signature, uint64_t number) {
  std::string text = cat(name_of(signature.kind), " #", number);
  if (signature.kind == OpKind::kBarrier) return text;
  text += shape_text(signature);
  text += cat(' ', c10::toString(static_cast<c10::ScalarType>(signature.dtype)));
  if (signature.tensors != 1) text += cat(" in ", signature.tensors, " tensors");
  if (signature.kind == OpKind::kFold) return text;
  if (reduces(signature.kind)) text += cat(' ', name_of(static_cast<ReduceOp>(signature.detail % 16)));
  const uint32_t root = reduces(signature.kind) ? signature.detail / 16 : signature.detail;
  const bool collects = signature.kind == OpKind::kReduce || signature.kind == OpKind::kGather;
  return has_root(signature.kind) ? text + cat(collects ? " to rank " : " from rank ", root) : text;
}

std::string message_text(const Call& call, int peer) {
  return cat(name_of(call.kind), call.kind == OpKind::kSend ? " to rank " : " from rank ", peer, " (tag ", call.tag,
             ')');
}

std::string difference_text(const std::vector<std::optional<Signature>>& by_rank, uint64_t number) {
  std::string text;
  std::vector<bool> told(by_rank.size(), false);
  std::set<std::string> calls;
  std::set<bool> folds;  // whether the ranks fold gradients
  for (size_t first = 0; first < by_rank.size(); ++first) {
    if (told[first] || !by_rank[first]) continue;
    std::vector<int> alike;
    for (size_t k = first; k < by_rank.size(); ++k) {
      if (by_rank[k] != by_rank[first]) continue;
      told[k] = true;
      alike.push_back(static_cast<int>(k));
    }
    const std::string call = text_of(*by_rank[first], number);
    folds.insert(by_rank[first]->kind == OpKind::kFold);
    text +=
        cat(text.empty() ? "" : ", ", named_ranks(alike), " called ", call,
            calls.insert(call).second ? "" : " of another step, bucket, --comm-dtype, memory layout or list of sizes");
  }
  text += "; every rank must make the same calls in the same order";
  return folds.size() == 2 ? cat(text, ": ", kUnevenLoops) : text;
}

void check_call(const Call& call, int size) {
  if (call.kind == OpKind::kFold) return check_fold(call);
  if (call.kind == OpKind::kBarrier) return;
  if (call.peer < 0 || call.peer >= size) {
    throw BugError(name_of(call.kind), ": no rank ", call.peer, " in a world of ", size);
  }
  if (!call.input.defined() && !call.output.defined()) {
    throw BugError(name_of(call.kind), ": neither an input nor an output");
  }
  if (reduces(call.kind)) check_reducible(call, any_tensor(call));
  if (call.input.defined() && call.output.defined() && call.input.scalar_type() != call.output.scalar_type()) {
    throw BugError(name_of(call.kind), ": the input is of ", call.input.toString(), ", the output of ",
                   call.output.toString());
  }
  check_sizes(call, size);
}

void widen_leaves(Call& call) {
  for (size_t i = 0; i < call.fold.leaves.size(); ++i) {
    if (call.fold.leaves[i].defined()) call.tensors[i].detach().copy_(call.fold.leaves[i]);
  }
  call.fold.leaves.clear();
}

void check_on_cpu(const Call& call) {
  const auto is_elsewhere = [](const at::Tensor& tensor) { return tensor.defined() && !tensor.is_cpu(); };
  if (is_elsewhere(call.input) || is_elsewhere(call.output) ||
      std::any_of(call.tensors.begin(), call.tensors.end(), is_elsewhere)) {
    throw BugError(name_of(call.kind), ": this backend takes tensors of the CPU alone");
  }
}

Signature in_world_ranks(Signature signature, const std::vector<int>& ranks) {
  const auto named = [&ranks](uint32_t root) { return static_cast<uint32_t>(root < ranks.size() ? ranks[root] : 0); };
  if (!has_root(signature.kind)) return signature;
  const bool sums = reduces(signature.kind);
  signature.detail = sums ? named(signature.detail / 16) * 16 + signature.detail % 16 : named(signature.detail);
  return signature;
}

namespace calls {

Call fold(std::vector<at::Tensor> tensors, FoldOptions options) {
  return {.kind = OpKind::kFold, .tensors = std::move(tensors), .fold = std::move(options)};
}

Call all_reduce(const at::Tensor& tensor, ReduceOp op) {
  return {.kind = OpKind::kAllReduce, .op = op, .input = tensor, .output = tensor};
}

Call reduce(const at::Tensor& tensor, int root, ReduceOp op) {
  return {.kind = OpKind::kReduce, .op = op, .peer = root, .input = tensor, .output = tensor};
}

Call broadcast(const at::Tensor& tensor, int root) {
  return {.kind = OpKind::kBroadcast, .peer = root, .input = tensor, .output = tensor};
}

Call all_gather(const at::Tensor& input, const at::Tensor& output, int size) {
  return {.kind = OpKind::kAllGather, .input = input, .output = output, .receive_counts = even(output.numel(), size)};
}

Call all_gather_uneven(const at::Tensor& input, const at::Tensor& output, std::vector<int64_t> counts) {
  return {.kind = OpKind::kAllGather,
          .input = input,
          .output = output,
          .receive_counts = std::move(counts),
          .uneven = true};
}

Call reduce_scatter(const at::Tensor& input, const at::Tensor& output, ReduceOp op) {
  return {.kind = OpKind::kReduceScatter, .op = op, .input = input, .output = output};
}

Call all_to_all(const at::Tensor& input, const at::Tensor& output, int size) {
  return {.kind = OpKind::kAllToAll,
          .input = input,
          .output = output,
          .send_counts = even(input.numel(), size),
          .receive_counts = even(output.numel(), size)};
}

Call all_to_all_uneven(const at::Tensor& input, const at::Tensor& output, std::vector<int64_t> send_counts,
                       std::vector<int64_t> receive_counts) {
  return {.kind = OpKind::kAllToAll,
          .input = input,
          .output = output,
          .send_counts = std::move(send_counts),
          .receive_counts = std::move(receive_counts),
          .uneven = true};
}

Call gather(const at::Tensor& input, const at::Tensor& output, int root, int size) {
  Call call{.kind = OpKind::kGather, .peer = root, .input = input, .output = output};
  if (output.defined()) call.receive_counts = even(output.numel(), size);
  return call;
}

Call scatter(const at::Tensor& input, const at::Tensor& output, int root, int size) {
  Call call{.kind = OpKind::kScatter, .peer = root, .input = input, .output = output};
  if (input.defined()) call.send_counts = even(input.numel(), size);
  return call;
}

Call send(const at::Tensor& tensor, int to, int tag) {
  return {.kind = OpKind::kSend, .peer = to, .tag = tag, .input = tensor};
}

Call receive(const at::Tensor& tensor, int from, int tag) {
  return {.kind = OpKind::kReceive, .peer = from, .tag = tag, .output = tensor};
}

Call barrier() { return {}; }

}  // namespace calls

}  // namespace lockstep::comm
