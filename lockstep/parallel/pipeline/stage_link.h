// What a stage of a pipeline and its neighbours send each other: activations forwards, their gradients backwards.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// A micro-batch's activations: a header that says what they are, then each tensor, without its graph; of gradients a
// word that says which there are, and these. Sends do not wait for their receivers. What a stage only passes on is
// copied before, for its owner may write to it again. Tensors of a GPU go by way of the host, which waits for those
// that it sends. One thread; errors are Communicator's, and ConfigError for what a header can't say, or where the
// stages are at different steps.
class StageLink {
 public:
  using Tensors = std::vector<at::Tensor>;
  static constexpr size_t kMostTensors = 8, kMostDims = 8;

  // The stages are the ranks of `comm`, in order. `device`: of this stage, for what its neighbours have on theirs.
  StageLink(comm::Communicator& comm, at::Device device) : comm_(comm), device_(device) {}

  // Begins a step of so many micro-batches, whose losses have this factor.
  void begin(int64_t step, int micro_batches, double loss_scale);
  // Waits until what was sent has arrived.
  void finish();
  // Waits until at most `most` messages are under way.
  void wait_below(size_t most);
  // Forgets what is under way, after an error.
  void drop() { sent_.clear(); }

  void send_outputs(int micro_batch, const Tensors& outputs);
  // Those that need a gradient, by the sender's graph, are leaves that require one.
  Tensors receive_inputs(int micro_batch);
  // The gradients of the inputs that have one.
  void send_gradients(int micro_batch, const Tensors& inputs);
  // One for each output, undefined where there is none.
  Tensors receive_gradients(int micro_batch, const Tensors& outputs);

  int64_t sent_bytes() const { return sent_bytes_; }  // of the step
  int64_t waited_ns() const { return waited_ns_; }    // for neighbours, in the step

 private:
  struct Sent {
    at::Tensor tensor;
    std::shared_ptr<comm::Work> work;
  };
  void send(const at::Tensor& tensor, int to, int tag);
  void receive(const at::Tensor& tensor, int from, int tag);
  at::Tensor received(at::IntArrayRef sizes, const at::TensorOptions& options, at::MemoryFormat format, int from,
                      int tag);

  comm::Communicator& comm_;
  at::Device device_;
  int64_t step_ = 0;
  int micro_batches_ = 0;
  double loss_scale_ = 1;
  std::deque<Sent> sent_;  // in order
  int64_t sent_bytes_ = 0, waited_ns_ = 0;
};

}  // namespace lockstep::parallel
