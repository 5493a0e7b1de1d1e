// What one rank asks of a communicator: a collective or a message, with its tensors.
#pragma once

#include <ATen/core/Tensor.h>

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

// The name that messages use; "unknown" for memory that holds no kind.
const char* name_of(OpKind kind);

struct FoldOptions {
  std::string label = {};       // what messages call it: "bucket 2/5 (layer3.conv1.weight …)"
  at::Tensor square_sums = {};  // optional: fp64 [blocks of all tensors], receives square_sum of each folded block
  std::optional<at::ScalarType> wire = {};  // kBFloat16 or kHalf, of fp32 tensors: every node of the tree is rounded
                                            // to it, leaves included, and so it travels
  // Where not empty, by tensor: what this rank adds, in bf16 or fp16 and of the tensor's sizes and strides; the fp32
  // tensor, whose own values do not count then, gets the sum. Undefined: the tensor itself. Ranks may differ in it.
  std::vector<at::Tensor> leaves = {};
};

// Counts are of elements, one for each rank. Where a rank has no input or output the tensor is left undefined. Tensors
// are on the CPU; those of a backend for GPUs, on its device.
struct Call {
  OpKind kind = OpKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int peer = 0;                          // the root; of send and receive the other rank
  int tag = 0;                           // of send and receive
  std::vector<at::Tensor> tensors = {};  // of a fold, in place
  at::Tensor input = {};                 // all_reduce, broadcast and a root's reduce are in place: input is output
  at::Tensor output = {};
  std::vector<int64_t> send_counts = {};     // all_to_all, scatter's root: how `input` is divided
  std::vector<int64_t> receive_counts = {};  // all_to_all, all_gather, gather's root: how `output` is divided
  bool uneven = false;                       // counts may differ from rank to rank
  FoldOptions fold = {};
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
  std::string what = {};                 // what messages call it, where the kind says too little

  std::string label() const {
    if (!what.empty()) return what;
    return kind == OpKind::kFold ? "fold of " + fold.label : name_of(kind);
  }
};

// What must be equal on all ranks that take part in a call.
struct Signature {
  OpKind kind;
  uint32_t dtype, detail, tensors;  // detail: the ReduceOp, the root or a fold's wire type
  int64_t elements;                 // of all tensors of the call together; -1 where ranks may differ
  uint64_t sizes_hash;              // of a fold: its tensors' numbers of elements, and its label

  bool operator==(const Signature&) const = default;
  uint64_t hash() const;
};

Signature signature_of(const Call& call);

// "broadcast #12 [64] Float from rank 0"
std::string text_of(const Signature& signature, uint64_t number);

// "rank 1 called broadcast #12 [64] Float from rank 0, ranks 0, 2-3 called …; …", for a DesyncError. Ranks without a
// signature have not been heard of.
std::string difference_text(const std::vector<std::optional<Signature>>& by_rank, uint64_t number);

// The same with a root that is named by its number in the world, for messages: `ranks` are the group's.
Signature in_world_ranks(Signature signature, const std::vector<int>& ranks);

// Of a fold: puts each leaf's values into its tensor, which then has none.
void widen_leaves(Call& call);

// Throws BugError for tensors that are not on the CPU.
void check_on_cpu(const Call& call);

// Throws BugError, the caller's mistake, with the collective's name, if a world of `size` can't carry this out.
void check_call(const Call& call, int size);

// Calls, for Communicator::start().
namespace calls {

Call fold(std::vector<at::Tensor> tensors, FoldOptions options);
Call all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);        // in place
Call reduce(const at::Tensor& tensor, int root, ReduceOp op = ReduceOp::kSum);  // in place, on the root alone
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
