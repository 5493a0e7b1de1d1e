// The fp32 masters of 16-bit weights (Micikevicius et al., "Mixed precision training", ICLR 2018). The optimizer steps
// the masters, so that changes too small for 16 bits add up.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::optim {

bool is_narrow(const at::Tensor& weight);  // fp16 or bf16

// Tells whether a weight was written since the last look at it.
class LastSeen {
 public:
  bool is_as_seen(const at::Tensor& weight) const;
  void see(const at::Tensor& weight);

 private:
  const void* data_ = nullptr;
  uint32_t version_ = 0;
};

// Returns the master with the weight's values where the weight is not its rounded copy, as after a broadcast or a load.
at::Tensor following(const at::Tensor& master, const at::Tensor& weight);

// The masters of some weights, which are told apart by their numbers. One thread.
class MasterWeights {
 public:
  // Copies the weights as they are.
  explicit MasterWeights(const std::vector<at::Tensor>& weights);
  ~MasterWeights();
  MasterWeights(const MasterWeights&) = delete;
  MasterWeights& operator=(const MasterWeights&) = delete;

  // Returns the masters that are kept of these weights by any MasterWeights of the process, in the weights' order.
  static std::vector<at::Tensor> kept_of(std::span<const at::Tensor> weights);

  // The master of `weight` for its next step, laid out as the weight is now, and made if there is none yet; undefined
  // for a weight of more than 16 bits. It follows a weight that was written since settle().
  const at::Tensor& prepare(size_t number, const at::Tensor& weight);
  // Called when a step has written the weight.
  void settle(size_t number, const at::Tensor& weight);

  // The masters by the weights' numbers; undefined for weights of more than 16 bits.
  const std::vector<at::Tensor>& all() const { return masters_; }

  // Continues from copies of `masters`, of any floating-point type, and rounds them into the weights; undefined ones
  // are skipped. Throws ConfigError that begins with `owner` for another number of them, other shapes, or a master of a
  // weight of more than 16 bits.
  void load(std::string_view owner, const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& masters);

  // Makes each 16-bit weight the rounded copy of its master.
  void round_into(const std::vector<at::Tensor>& weights) const;

 private:
  void add(size_t number, const at::Tensor& weight);

  std::vector<at::Tensor> weights_, masters_;
  std::vector<LastSeen> seen_;  // the weights
};

}  // namespace lockstep::optim
