// A lane's forward and backward, recorded on a GPU once and then done by one launch.
//
// A step of a small network, or of many layers, takes the host longer to launch than the GPU to compute. The first two
// steps are computed as ever: libraries try out their kernels. The third is on the stream that is recorded on, and the
// fourth is recorded and replayed, as all later ones.
//
// The function of a lane is not called for a replayed step. So it must do the same operations on the same memory every
// time: batches are copied into tensors that stay, and nothing depends on the host, such as a rate of dropout that
// changes, a number that was drawn on the CPU, or a hook of a tensor. Random numbers of the GPU are drawn anew: the
// generator's seed is read at every replay. DistributedDataParallel notices layers that change between training and
// evaluation.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/plugins/device_graph.h"

namespace lockstep::parallel {

// The loss has no graph; the gradients are in the order of the parameters. Both may have the memory of the recording:
// the next replay overwrites them.
struct LaneOutcome {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;
};

// One thread.
class LaneGraph {
 public:
  // `parameters` are trained; `others` is what the function uses besides, such as buffers: where any of them has other
  // memory than when the lane was recorded, it is recorded anew.
  LaneGraph(std::vector<at::Tensor> parameters, std::vector<at::Tensor> others, comm::MakeDeviceGraph make);
  ~LaneGraph();

  // Returns nothing where the caller is to compute the lane itself: in the first steps, with another number of
  // `samples` than was recorded, and for good after an operation could not be recorded or too many recordings did not
  // last. `loss_of` returns the lane's mean loss; the gradients are those of the loss times `factor`.
  std::optional<LaneOutcome> run(int64_t samples, const std::function<at::Tensor()>& loss_of, double factor);

  // Records anew, after steps that are computed as ever.
  void forget();
  // Before something else is computed, such as an evaluation: forgets a recording beside which there is too little
  // memory for the tensors of another step.
  void make_room();

  bool is_recorded() const { return !recorded_.empty(); }
  // Why lanes are no longer recorded; empty if they are, or that is not known yet.
  const std::string& refusal() const { return refusal_; }

 private:
  bool record(const std::function<at::Tensor()>& loss_of);
  std::vector<at::Tensor> compute(const std::function<at::Tensor()>& loss_of) const;
  bool has_moved();
  void drop();

  std::vector<at::Tensor> parameters_, others_;
  comm::MakeDeviceGraph make_;
  std::unique_ptr<comm::DeviceGraph> graph_;  // one for all recordings: libraries keep memory for each stream
  at::Tensor factor_;                         // on the device, fp32 []
  int64_t samples_ = -1;
  int steps_ = 0;        // with this number of samples
  int replays_ = 0;      // of the recording
  int short_lived_ = 0;  // recordings that were forgotten after few of them
  std::vector<const void*> addresses_;
  std::vector<at::Tensor> recorded_;  // the loss, then the gradients; empty before
  std::string refusal_;
};

}  // namespace lockstep::parallel
