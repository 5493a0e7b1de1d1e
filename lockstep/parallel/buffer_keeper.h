// Keeps a module's buffers (BatchNorm's running statistics and the like) independent of the number of ranks: every lane
// of a step begins with the buffers of the step's start, and only lane 0's changes survive.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

class BufferKeeper {
 public:
  // `travel`: every rank gets the buffers of rank 0. Otherwise each rank keeps those of its own first lane. The buffers
  // move into one piece of memory for each device; they stay the tensors that they are. Throws ConfigError for a sparse
  // one.
  explicit BufferKeeper(const torch::nn::Module& module, bool travel = true);

  void begin_step(comm::Communicator& comm);  // gives every rank the buffers of rank 0; a collective
  void begin_lane();                          // restores the buffers of the step's start
  // Keeps the changes of lane 0: of all lanes, or of this rank's where buffers do not travel. `lane` is the number over
  // all ranks, `own` that on this rank.
  void end_lane(int lane, size_t own);
  void end_step();  // gives the module the buffers that lane 0 has left
  // For lanes that run by turns (lane_turns.h): lane number `turn` is suspended, or resumed with the buffers it had.
  void leave(size_t turn);
  void enter(size_t turn);

  // Restores the buffers of the step's start after the step has failed.
  void restore() noexcept;

  // Called on all ranks when a forward may have changed the buffers.
  void mark_changed() { changed_ = true; }
  // Gives every rank the buffers of rank 0, which computes lane 0. A collective; nothing if no change was marked since
  // the last.
  void sync(comm::Communicator& comm);

 private:
  struct Packed {
    std::string name;
    at::Tensor buffer, part;  // the module's own, and its place in now_, which is its memory
  };

  static void copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from);
  at::Tensor pack(std::vector<Packed> buffers);
  void take_back();

  bool travel_;
  std::vector<Packed> buffers_;
  // Each by device: uint8, all buffers.
  std::vector<at::Tensor> now_;                // the module's own
  std::vector<at::Tensor> start_;              // copies made when the step began
  std::vector<at::Tensor> kept_;               // as lane 0 left them; without lane 0, as the step began
  std::vector<std::vector<at::Tensor>> left_;  // by turn: as the suspended lane left them
  bool in_step_ = false;
  bool changed_ = false;  // since the last sync()
};

}  // namespace lockstep::parallel
