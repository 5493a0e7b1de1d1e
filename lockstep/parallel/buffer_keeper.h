// A module's buffers (BatchNorm's running statistics and the like) over the lanes of a step: every lane sees those of
// the step's start, and only lane 0's changes survive.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

class BufferKeeper {
 public:
  // `travel`: they are rank 0's everywhere; otherwise every rank keeps its own first lane's.
  explicit BufferKeeper(const torch::nn::Module& module, bool travel = true);

  bool empty() const { return buffers_.empty(); }
  // Around the step; lanes are this rank's, numbered over all ranks (on this rank, where buffers do not travel). The
  // beginning is a collective where a forward may read buffers: of a BatchNorm in eval mode, or of anything that is no
  // BatchNorm.
  void begin_step(comm::Communicator& comm);
  void begin_lane();
  void end_lane(int lane);
  void end_step();
  // Where lanes run by turns: lane number `turn` stops, or goes on with the buffers that it had.
  void leave(size_t turn);
  void enter(size_t turn);

  // The step has failed: back to what it found.
  void restore() noexcept;

  // After a pass by hand: rank 0's for all where the next forward may read them. A collective then.
  void sync_if_read(comm::Communicator& comm);

  // A forward by hand may have changed them.
  void mark_changed() { changed_ = true; }

  // Gives every rank the buffers of rank 0, whose first lane is lane 0. A collective.
  void sync(comm::Communicator& comm);

 private:
  static void copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from);

  bool read_by_forward() const;

  bool travel_;
  std::vector<std::shared_ptr<torch::nn::Module>> norms_;  // the BatchNorms
  bool others_ = false;                                    // buffers that are no BatchNorm's
  std::vector<at::Tensor> buffers_;                        // the module's own
  std::vector<at::Tensor> start_;                          // as the step found them
  std::vector<at::Tensor> kept_;                           // as lane 0 left them; elsewhere as the step found them
  std::vector<std::vector<at::Tensor>> left_;              // by turn, as the lane left them
  bool in_step_ = false;
  bool changed_ = false;  // since the last sync
};

}  // namespace lockstep::parallel
