// The interface of every communication backend: collectives, messages, and the fold, which reduces gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/call.h"

namespace lockstep::comm {

// A call under way, used on the thread that began it. The backend keeps the call's tensors until every rank is through,
// so a caller may drop the work. It may not if the call's output is not contiguous: the work itself copies the result
// there once done(), wait_for() or wait() sees that the call is done. The communicator outlives its works.
class Work {
 public:
  virtual ~Work() = default;
  // Makes progress without waiting, and says whether the call is done. Throws as Communicator's waits.
  virtual bool done() = 0;
  // Waits for at most `time`, and says whether the call is done. Throws as Communicator's waits.
  virtual bool wait_for(std::chrono::nanoseconds time) = 0;
  // Returns when the call is done. Throws as Communicator's waits, at the latest after the call's timeout.
  virtual void wait() = 0;
  // The time from the call's beginning until now, or until it was seen to be done.
  virtual std::chrono::nanoseconds elapsed() const = 0;
  // Where wait() makes a GPU's stream wait, and not the host: the time for which the stream did, once the call is done.
  virtual std::optional<std::chrono::nanoseconds> stream_waited() const { return std::nullopt; }
};

// A rank's handle on a group of ranks. All ranks call the same collectives in the same order, each rank from one
// thread; messages may be mixed with them in any order. Tensors may have any strides, those of a fold must be dense. A
// tensor is in one call at a time. Every wait ends within the timeout. It throws CommError that names the missing ranks
// and says whether they are stopped, slow or dead, and DesyncError that says which rank called what where the calls
// differ or ranks wait for each other in a circle.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;
  // The transport in words: "gloo over eth0 (10.0.0.2), 4 ranks".
  virtual std::string describe() const;

  // Whether a fold gives the same bits at any number of ranks.
  virtual bool same_bits() const { return true; }

  // Whether the other ranks can read and write this tensor's memory directly, so that its calls need no copy.
  virtual bool shares(const at::Tensor& tensor) const = 0;

  // Whether the ranks have memory in common, so that views_of() can give views.
  virtual bool has_views() const { return false; }

  // Maps the root's tensors into this process: returns tensors over the root's memory, so that a write of one rank is
  // seen by all. `mine` are this rank's own tensors, as many as the root's and with equal sizes, strides and dtypes;
  // throws ConfigError otherwise. The root gets `mine` back. Empty on all ranks if one of them can't reach the root's
  // memory. The values are valid for as long as the root keeps its tensors; the memory stays mapped as long as a view
  // of it lives. A collective.
  virtual std::vector<at::Tensor> views_of(int /*root*/, const std::vector<at::Tensor>& /*mine*/) { return {}; }

  // Begins a call (call.h). The tensors that it writes get new versions, as by an operation in place: a graph that has
  // saved one of them says so in its backward pass. Throws as check_call() for a call that is wrong.
  std::shared_ptr<Work> start(Call call);

  // Makes progress on all calls under way, without waiting. To be called now and then during a computation.
  virtual void progress() = 0;

  // Begins a fold: replaces each tensor, in place, by its sum over ranks in the order of the fold's tree (fold_tree.h).
  // The tensors are dense, of one dtype, with the same sizes and layouts on every rank.
  std::shared_ptr<Work> fold(std::vector<at::Tensor> tensors, FoldOptions options);

  // The calls below are blocking but for isend and irecv: they return when they are done. A send may wait until it is
  // received. All reductions add in the order of the fold's tree.
  void all_reduce(const at::Tensor& tensor, ReduceOp op);        // in place
  void reduce(const at::Tensor& tensor, int root, ReduceOp op);  // in place; only the root gets the result
  void broadcast(const at::Tensor& tensor, int root);            // in place: all ranks get the root's values
  at::Tensor all_gather(const at::Tensor& tensor);               // returns [size, …], the tensors of all ranks
  // Returns every rank's tensor, by rank; their first dimensions may differ.
  std::vector<at::Tensor> all_gather_uneven(const at::Tensor& tensor);
  // Reduces `tensor`, [size, …], over all ranks, and returns to rank k its row k, […].
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op);
  // Sends row k of `tensor`, [size, …], to rank k. Returns the received rows, [size, …], by sender.
  at::Tensor all_to_all(const at::Tensor& tensor);
  // The same with uneven parts: rank k gets the next send_rows[k] rows of the first dimension, and sends
  // receive_rows[k].
  at::Tensor all_to_all(const at::Tensor& tensor, const std::vector<int64_t>& send_rows,
                        const std::vector<int64_t>& receive_rows);
  at::Tensor gather(const at::Tensor& tensor, int root);  // returns [size, …] on the root, an undefined one elsewhere
  void scatter(const at::Tensor& rows, const at::Tensor& out, int root);  // the root's rows, [size, …]: row k to rank k
  void send(const at::Tensor& tensor, int to, int tag = 0);
  void receive(const at::Tensor& tensor, int from, int tag = 0);  // writes to `tensor`
  // The same without waiting: they return the message under way. `tensor` is not to be touched before it is done. Over
  // shared memory the peers see a rank's oldest 128 messages; those beyond come up as they are received.
  std::shared_ptr<Work> isend(const at::Tensor& tensor, int to, int tag = 0);
  std::shared_ptr<Work> irecv(const at::Tensor& tensor, int from, int tag = 0);
  void barrier();  // returns when every rank has called it

  // Splits the ranks into groups: those that pass the same color form one, ordered by their keys, then by rank. Returns
  // this rank's group, on the same backend (a hierarchy's group uses the network alone); nothing for a color below 0. A
  // collective over all ranks. Groups may be used beside each other and beside this one, as long as all ranks of a
  // group call its collectives in one order.
  std::unique_ptr<Communicator> split(int color, int key = 0);
  // The group of `members`, given by their ranks here and in that order; this rank is one of them. Nothing if `members`
  // is empty. A collective over all ranks, each of which passes the group that it is in.
  std::unique_ptr<Communicator> make_group(const std::vector<int>& members) { return group(members); }

  // Tells all ranks that this one gives up: their present or next wait throws CommError with `reason`, unless the call
  // is done, and no rank, this one among them, begins another.
  virtual void abort(const std::string& reason) noexcept = 0;

 protected:
  // Whether begin() takes folds with leaves (FoldOptions). Where it doesn't, start() widens them before.
  virtual bool takes_leaves() const { return false; }
  // Begins a checked call whose input and output are contiguous.
  virtual std::shared_ptr<Work> begin(Call call) = 0;
  // Implements make_group().
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& members) = 0;
};

}  // namespace lockstep::comm
