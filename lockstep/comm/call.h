// A call: the collective or message that one rank asks of a communicator, with its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

enum class OpKind : uint32_t {
  kFold,
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kReceive,
  kBarrier
};

// The kind's name for error messages; "unknown" for a value that is no kind.
const char* name_of(OpKind kind);

struct FoldOptions {
  std::string label = {};       // the fold's name in error messages: "bucket 2/5 (layer3.conv1.weight …)"
  uint64_t step = 0;            // the number of the step or pass that it belongs to: of another one is a DesyncError
  at::Tensor square_sums = {};  // optional output, fp64, contiguous: those of the folded tensors (square_sums.h)
  // For fp32 tensors: the dtype in which values travel, kBFloat16 or kHalf. Every node of the tree, leaves included, is
  // rounded to it. Without it values travel in the tensors' dtype.
  std::optional<at::ScalarType> wire = {};
  // Low-precision leaves: leaves[i], bf16 or fp16 with the sizes and strides of the fp32 tensor i, is what this rank
  // adds in place of that tensor's values; the tensor gets the sum. An undefined leaf stands for the tensor itself.
  // Empty means no leaves. Ranks may differ in their leaves. Not together with `wire`.
  std::vector<at::Tensor> leaves = {};
};

// Counts are numbers of elements, one for each rank. The tensor of a rank without input or output stays undefined.
// Tensors are on the CPU, or, for a backend for GPUs, on its device.
struct Call {
  OpKind kind = OpKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int peer = 0;                          // the root, or the other rank of a send or receive
  int tag = 0;                           // of a send or receive: only equal tags match
  std::vector<at::Tensor> tensors = {};  // a fold's tensors, reduced in place
  at::Tensor input = {};                 // the same as output in all_reduce, broadcast and reduce: these are in place
  at::Tensor output = {};
  std::vector<int64_t> send_counts = {};     // of all_to_all and scatter's root: the division of `input`
  std::vector<int64_t> receive_counts = {};  // of all_to_all, all_gather and gather's root: the division of `output`
  bool uneven = false;                       // counts may differ from rank to rank
  FoldOptions fold = {};
  std::chrono::milliseconds timeout{0};  // 0: the communicator's timeout
  std::string what = {};                 // the call's name in error messages; empty: the name of its kind

  // The call's name in error messages.
  std::string label() const {
    if (!what.empty()) return what;
    return kind == OpKind::kFold ? "fold of " + fold.label : name_of(kind);
  }
};

// The properties of a call that must be equal on all ranks that take part in it.
struct Signature {
  OpKind kind;
  uint32_t dtype, detail, tensors;  // detail: the ReduceOp, the root or a fold's wire type
  int64_t elements;                 // in all tensors of the call together; -1 where ranks may differ
  // Of a fold: of its tensors' sizes and layouts in memory, its label and its step. Of a call whose tensors have one
  // shape on all ranks: of that shape.
  uint64_t sizes_hash;

  // The shape, for messages; sizes_hash has it, too. dims is -1 if there is none, or one of more dimensions.
  static constexpr int32_t kMostDims = 7;
  int32_t dims = -1;
  std::array<uint32_t, kMostDims> sizes = {};

  bool operator==(const Signature& other) const;
  uint64_t hash() const;
};

Signature signature_of(const Call& call);

// The call in words, `number` being its number: "broadcast #12 [64] Float from rank 0".
std::string text_of(const Signature& signature, uint64_t number);

// A send or receive in words: "send to rank 1 (tag 0)", `peer` being the peer's rank in the world.
std::string message_text(const Call& call, int peer);

// The advice for ranks whose loops may have ended at different steps.
constexpr const char* kUnevenLoops =
    "if a rank's data ended before the others', run the loop in ddp.join() or give all ranks as many steps";

// The text of a DesyncError: "rank 1 called broadcast #12 [64] Float from rank 0, ranks 0, 2-3 called …; …". A rank
// without a signature has not been heard of.
std::string difference_text(const std::vector<std::optional<Signature>>& by_rank, uint64_t number);

// The signature of a group's call with the root's rank in the group replaced by its rank in the world, for messages.
// `ranks` are the group's members as ranks of the world.
Signature in_world_ranks(Signature signature, const std::vector<int>& ranks);

// Widens each leaf of a fold into its fp32 tensor, and removes the leaves from the call.
void widen_leaves(Call& call);

// Throws BugError for tensors that are not on the CPU.
void check_on_cpu(const Call& call);

// Throws BugError with the collective's name for a call that is wrong in a world of `size` ranks, and ConfigError for
// the mean of integers, which would be rounded.
void check_call(const Call& call, int size);

// Makers of calls for Communicator::start().
namespace calls {

Call fold(std::vector<at::Tensor> tensors, FoldOptions options);
Call all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);        // in place
Call reduce(const at::Tensor& tensor, int root, ReduceOp op = ReduceOp::kSum);  // in place; only the root gets it
Call broadcast(const at::Tensor& tensor, int root);                             // in place
Call all_gather(const at::Tensor& input, const at::Tensor& output, int size);   // output: [size, …]
Call all_gather_uneven(const at::Tensor& input, const at::Tensor& output, std::vector<int64_t> counts);
Call reduce_scatter(const at::Tensor& input, const at::Tensor& output,
                    ReduceOp op = ReduceOp::kSum);                             // input: [size, …]
Call all_to_all(const at::Tensor& input, const at::Tensor& output, int size);  // both [size, …]
Call all_to_all_uneven(const at::Tensor& input, const at::Tensor& output, std::vector<int64_t> send_counts,
                       std::vector<int64_t> receive_counts);
Call gather(const at::Tensor& input, const at::Tensor& output, int root, int size);   // output: [size, …] on the root
Call scatter(const at::Tensor& input, const at::Tensor& output, int root, int size);  // input: [size, …] on the root
Call send(const at::Tensor& tensor, int to, int tag = 0);
Call receive(const at::Tensor& tensor, int from, int tag = 0);
Call barrier();

}  // namespace calls

}  // namespace lockstep::comm
