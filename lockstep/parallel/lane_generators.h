// The generators that libtorch's kernels draw from, in the lanes of a step: the CPU's, those of the devices on which
// the module is, and that of this rank's GPU where the process uses it.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace lockstep::parallel {

// Returns the devices of the module's parameters and buffers, each once, the CPU first.
std::vector<c10::Device> devices_of(const torch::nn::Module& module);

// Used by the thread whose lane it is.
class LaneGenerators {
 public:
  explicit LaneGenerators(const torch::nn::Module& module);
  explicit LaneGenerators(const std::vector<c10::Device>& devices);  // those of these alone

  void seed(uint64_t seed);  // before a lane

  // For lanes that run by turns (lane_turns.h): lane number `turn` is suspended, or resumed with the states it had.
  void begin_turns(size_t lanes) { left_.assign(lanes, {}); }
  void leave(size_t turn) { left_[turn] = states(); }
  bool enter(size_t turn);  // returns false for a lane that begins

  // Keeps the states while the object lives: draws outside of a step's lanes do not depend on them.
  class Kept {
   public:
    explicit Kept(LaneGenerators& generators) : generators_(generators), states_(generators.states()) {}
    ~Kept() { generators_.set_states(states_); }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

   private:
    LaneGenerators& generators_;
    std::vector<at::Tensor> states_;
  };

  // By generator. For a lane that goes on elsewhere.
  std::vector<at::Tensor> states() const;
  void set_states(const std::vector<at::Tensor>& states);

 private:
  std::vector<at::Generator> generators_;
  std::vector<std::vector<at::Tensor>> left_;  // by turn and generator
};

}  // namespace lockstep::parallel
