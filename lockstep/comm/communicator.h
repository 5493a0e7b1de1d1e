// The interface of every communication backend: the collectives, messages, and the fold that gradients take.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// A call under way. Used on the thread that began it; it holds the call's tensors until every rank is through, so it
// may be dropped, unless an output is not contiguous: that is written by whoever sees that the call is done. The
// communicator outlives its works.
class Work {
 public:
  virtual ~Work() = default;
  // Both throw as Communicator says.
  virtual bool done() = 0;                                   // moves it on as far as that goes without waiting
  virtual bool wait_for(std::chrono::nanoseconds time) = 0;  // whether it is done within so long
  virtual void wait() = 0;                                   // returns when it is done, within the call's timeout
  virtual std::chrono::nanoseconds elapsed() const = 0;      // since it began; stands still from when it was seen done
};

// All ranks call the same collectives in the same order, each rank from one thread; messages go beside them in any
// order. Tensors of any strides (of a fold: dense). Every wait ends within the timeout: CommError names who is missing
// and whether they are stopped, slow or dead; DesyncError says which ranks called what when they differ. A tensor is in
// one call at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;
  // The transport, for people: "gloo over eth0 (10.0.0.2), 4 ranks".
  virtual std::string describe() const;
  // Whether a fold's bits do not depend on the number of ranks.
  virtual bool same_bits() const { return true; }

  // Whether the ranks can work on this tensor's memory where it is, without a copy.
  virtual bool shares(const at::Tensor& tensor) const = 0;

  // Whether the ranks have memory in common, so that views_of() can give views.
  virtual bool has_views() const { return false; }

  // The root's tensors as tensors of this process, over the same memory: whoever writes to one writes to all. `mine`
  // are this rank's, as many and with the same sizes, strides and dtypes as the root's (ConfigError), and are what the
  // root itself gets. Empty on all ranks where not all of them can reach the root's memory. The memory holds the values
  // for as long as the root keeps its tensors; it stays mapped as long as a view of it lives. A collective.
  virtual std::vector<at::Tensor> views_of(int /*root*/, const std::vector<at::Tensor>& /*mine*/) { return {}; }

  // Begins a call (call.h); throws BugError for one that can't be.
  std::shared_ptr<Work> start(Call call);

  // Moves everything under way on, as far as that goes without waiting. Call it now and then while computing.
  virtual void progress() = 0;

  // Each tensor becomes the sum over ranks, in the fold's tree order (fold_tree.h), in place. The tensors are dense,
  // of one dtype, with the same sizes and layouts on every rank.
  std::shared_ptr<Work> fold(std::vector<at::Tensor> tensors, FoldOptions options);

  // From here on calls return when they are done. All reductions are in the fold's order.
  void all_reduce(const at::Tensor& tensor, ReduceOp op);        // in place
  void reduce(const at::Tensor& tensor, int root, ReduceOp op);  // in place, on the root alone
  void broadcast(const at::Tensor& tensor, int root);            // in place: everyone gets the root's values
  at::Tensor all_gather(const at::Tensor& tensor);               // [size, …]: every rank's tensor, all of one shape
  // Every rank's tensor; their first dimensions may differ.
  std::vector<at::Tensor> all_gather_uneven(const at::Tensor& tensor);
  // Of a tensor [size, …], row k reduced over all ranks goes to rank k, as a tensor […].
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op);
  at::Tensor all_to_all(const at::Tensor& tensor);  // of [size, …] row k goes to rank k: returns [size, …], by sender
  // Of the first dimension `send_rows[k]` rows go to rank k, and `receive_rows[k]` come from it.
  at::Tensor all_to_all(const at::Tensor& tensor, const std::vector<int64_t>& send_rows,
                        const std::vector<int64_t>& receive_rows);
  at::Tensor gather(const at::Tensor& tensor, int root);  // on the root [size, …], elsewhere undefined
  void scatter(const at::Tensor& rows, const at::Tensor& out, int root);  // rows: [size, …], on the root
  void send(const at::Tensor& tensor, int to, int tag = 0);
  void receive(const at::Tensor& tensor, int from, int tag = 0);  // into `tensor`
  void barrier();                                                 // returns when every rank has called it

  // The ranks that pass the same color, in the order of their keys (then ranks), as a world of their own, on the same
  // backend (of a hierarchy: on the network alone); nothing for a color below 0. A collective over all ranks. Groups
  // may be used beside each other and beside this one, as long as all ranks of a group call it in one order.
  std::unique_ptr<Communicator> split(int color, int key = 0);
  // The world of `members`, named by their ranks here and in that order, this rank among them; without members nothing.
  // All ranks of this world call it at once, each with its own group.
  std::unique_ptr<Communicator> make_group(const std::vector<int>& members) { return group(members); }

  // Tells all ranks that this one gives up: whatever they wait for, or wait for next, throws CommError with `reason`.
  virtual void abort(const std::string& reason) noexcept = 0;

 protected:
  // Whether begin() takes folds with leaves (FoldOptions) of these tensors; elsewhere they are widened before it.
  virtual bool takes_leaves() const { return false; }
  // Begins a checked call whose input and output are contiguous.
  virtual std::shared_ptr<Work> begin(Call call) = 0;
  // As make_group().
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& members) = 0;
};

}  // namespace lockstep::comm
