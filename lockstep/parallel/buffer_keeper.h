// Keeps a module's buffers (BatchNorm's running statistics and the like) independent of the number of ranks: every lane
// of a step begins with the buffers of the step's start, and only lane 0's changes survive.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

class BufferKeeper {
 public:
  // `travel`: every rank gets the buffers of rank 0. Otherwise each rank keeps those of its own first lane.
  explicit BufferKeeper(const torch::nn::Module& module, bool travel = true);

  bool empty() const { return buffers_.empty(); }
  // Begins a step. A collective where a forward may read buffers: in a BatchNorm in eval mode, or in a module that is
  // no BatchNorm.
  void begin_step(comm::Communicator& comm);
  void begin_lane();  // restores the buffers of the step's start
  // Keeps the changes of lane 0. Lanes are numbered over all ranks, or on this rank where buffers do not travel.
  void end_lane(int lane);
  void end_step();  // gives the module the buffers that lane 0 has left
  // For lanes that run by turns (lane_turns.h): lane number `turn` is suspended, or resumed with the buffers it had.
  void leave(size_t turn);
  void enter(size_t turn);

  // Restores the buffers of the step's start after the step has failed.
  void restore() noexcept;

  // Called after a hand-driven pass: gives every rank the buffers of rank 0 if the next forward may read them. A
  // collective then.
  void sync_if_read(comm::Communicator& comm);

  // Called when a hand-driven forward may have changed the buffers.
  void mark_changed() { changed_ = true; }

  // Gives every rank the buffers of rank 0, which computes lane 0. A collective.
  void sync(comm::Communicator& comm);

 private:
  static void copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from);

  bool read_by_forward() const;

  bool travel_;
  std::vector<std::shared_ptr<torch::nn::Module>> norms_;  // the module's BatchNorms
  bool others_ = false;                                    // the module has buffers outside of BatchNorms
  std::vector<at::Tensor> buffers_;                        // the module's own
  std::vector<at::Tensor> start_;                          // copies made when the step began
  std::vector<at::Tensor> kept_;                           // as lane 0 left them; without lane 0, as the step began
  std::vector<std::vector<at::Tensor>> left_;              // by turn: as the suspended lane left them
  bool in_step_ = false;
  bool changed_ = false;  // since the last sync()
};

}  // namespace lockstep::parallel
