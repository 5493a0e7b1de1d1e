// The interface of every communication backend: the collectives, and the fold that gradients take.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/reduce.h"

namespace lockstep::comm {

// A collective under way. Used on the thread that began it.
class Work {
 public:
  virtual ~Work() = default;
  virtual bool done() = 0;  // moves it on as far as that goes without waiting
  virtual void wait() = 0;  // returns when it is done; throws as Communicator says
};

struct FoldOptions {
  std::string label;       // what messages call it: "bucket 2/5 (layer3.conv1.weight …)"
  at::Tensor square_sums;  // optional: fp64 [blocks of all tensors], receives square_sum of each folded block
};

// All ranks call the same collectives in the same order, each rank from one thread. Tensors are on the CPU, of a dtype
// that can_reduce() has where they are reduced. Every wait ends within the timeout: CommError names who is missing, or,
// within 100 ms, who died; DesyncError says which ranks called what when they differ.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;

  // Whether the ranks can work on this tensor's memory where it is, without a copy.
  virtual bool shares(const at::Tensor& tensor) const = 0;

  // Each tensor becomes the sum over ranks, in the fold's tree order (fold_tree.h), in place. The tensors are dense,
  // of one dtype, with the same sizes and layouts on every rank; the work holds them until every rank is through.
  virtual std::shared_ptr<Work> fold(std::vector<at::Tensor> tensors, FoldOptions options) = 0;

  // Moves all folds under way on, as far as that goes without waiting. Call it now and then while computing.
  virtual void progress() = 0;

  // In place; sums and means in the fold's order.
  virtual void all_reduce(const at::Tensor& tensor, ReduceOp op) = 0;
  // In place: everyone gets the root's values.
  virtual void broadcast(const at::Tensor& tensor, int root) = 0;
  // Returns [size, …]: every rank's tensor; all have one shape.
  virtual at::Tensor all_gather(const at::Tensor& tensor) = 0;
  // Of a tensor [size, …], row k reduced over all ranks is returned to rank k, as a tensor […].
  virtual at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op) = 0;
  // Returns when every rank has called it.
  virtual void barrier() = 0;

  // Tells all ranks that this one gives up: whatever they wait for, or wait for next, throws CommError with `reason`.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// Checks of arguments that all backends share; throw BugError (the caller's mistake) with the collective's name.
void check_reducible(const char* collective, const at::Tensor& tensor, ReduceOp op);
void check_fold(const std::vector<at::Tensor>& tensors, const FoldOptions& options);
void check_rows(const char* collective, const at::Tensor& tensor, int size);

}  // namespace lockstep::comm
