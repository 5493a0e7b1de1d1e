// Keeps a module's buffers (BatchNorm's running statistics and the like) independent of the number of ranks: every lane
// of a step begins with the buffers of the step's start, and only lane 0's changes survive.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

class BufferKeeper {
 public:
  // The module outlives this. `travel`: every rank gets the buffers of rank 0. Otherwise each rank keeps those of its
  // own first lane. The buffers move into one piece of memory for each device; they stay the tensors that they are.
  // Throws ConfigError for a sparse one, and as pack() does.
  explicit BufferKeeper(const torch::nn::Module& module, bool travel = true);

  // Buffers that are in a keeper's memory, by their identity. Several modules may hold one buffer; of the keepers that
  // get one set, in the same order on all ranks, the first takes it, and the others pass it over.
  using Taken = std::unordered_set<const c10::TensorImpl*>;

  void begin_step(comm::Communicator& comm, Taken& taken);  // gives every rank the buffers of rank 0; a collective
  void begin_lane();                                        // restores the buffers of the step's start
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
  void sync(comm::Communicator& comm, Taken& taken);
  // The same at the end of a backward pass by hand. The forward's graph may be alive, for another pass, and may have
  // saved a buffer: if the program has changed that in place, and it gets another value here, a later pass through it
  // is autograd's error. The running statistics of a layer in training are saved, but no pass reads them.
  void sync_after_pass(comm::Communicator& comm, Taken& taken);

 private:
  struct Packed {
    std::string name;
    at::Tensor buffer, part;                  // the module's own, and its place in now_, which is its memory
    at::Tensor start;                         // its place in start_
    const torch::nn::Module* norm = nullptr;  // of a running statistic: its layer
    int64_t version = 0;                      // the buffer's at the end of the last pass

    bool is_here() const { return buffer.const_data_ptr() == part.const_data_ptr(); }
  };

  static void copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from);
  void keep(std::vector<Packed> buffers);
  void take_back(Taken& taken);
  void send(comm::Communicator& comm);

  bool travel_;
  std::vector<std::shared_ptr<torch::nn::Module>> layers_;  // of the module, which itself outlives this
  std::vector<Packed> buffers_;
  // Each by device: uint8, all buffers.
  std::vector<at::Tensor> now_;                // the module's own
  std::vector<at::Tensor> start_;              // copies made when the step began, or before a pass was synced
  std::vector<at::Tensor> kept_;               // as lane 0 left them; without lane 0, as the step began
  std::vector<std::vector<at::Tensor>> left_;  // by turn: as the suspended lane left them
  bool in_step_ = false;
  bool changed_ = false;  // since the last sync()
};

}  // namespace lockstep::parallel
