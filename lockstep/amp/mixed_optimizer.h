// The optimizer of a model in mixed precision, libtorch's or one of lockstep/optim, with the fp32 masters that it
// steps.
#pragma once

#include <torch/optim/optimizer.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "lockstep/amp/master_weights.h"
#include "lockstep/optim/any_optimizer.h"

namespace lockstep::optim {
class FusedOptimizer;
}

namespace lockstep::amp {

using MastersByWeight = std::unordered_map<c10::TensorImpl*, at::Tensor>;

// One thread. The optimizer, which keeps its parameters and groups, outlives it.
class MixedOptimizer {
 public:
  // Gives the optimizer's 16-bit parameters fp32 masters if `master_weights` is set. Throws ConfigError for an
  // optimizer that has taken a step.
  MixedOptimizer(torch::optim::Optimizer& optimizer, bool master_weights);

  torch::optim::Optimizer& optimizer() const { return *optimizer_; }
  // Whether update() multiplies the gradients in fp32 within its pass, so that 16-bit ones can stay scaled until then.
  bool is_fused() const { return fused_ != nullptr; }
  // Whether the optimizer steps masters with a .grad of their own, which take_gradients() fills.
  bool copies_gradients() const { return masters_.has_value(); }

  // Multiplies the gradients by `factor`: those of masters as they are copied, the others in place. Returns whether all
  // were finite.
  bool take_gradients(double factor);
  // Makes the 16-bit gradients that take_gradients() has copied undefined.
  void drop_copied_gradients();

  // Steps the optimizer. If copies_gradients(), take_gradients() must have taken the gradients before. For libtorch's
  // optimizers the gradients are multiplied and clipped in place.
  void update(const optim::Update& update);
  // Takes the gradients that backward left, and steps the optimizer.
  void take_and_update(optim::Update update);
  void zero_grad();

  // Returns the tensors that the optimizer steps, by parameter through all groups: its masters, or the parameters that
  // have none. They share the optimizer's memory.
  std::vector<at::Tensor> stepped() const;
  // Returns the masters, by the model's weight. They share the optimizer's memory; those of a sharded optimizer are
  // whole on rank 0.
  MastersByWeight masters_by_weight() const;
  // Copies those of these values whose weights have masters into the masters, and rounds them into the model.
  void load_masters_by_weight(const MastersByWeight& values);
  // Copies these tensors, one for each of stepped() and of equal shape, into stepped(), and rounds them into the model.
  // Without this call masters begin with the weights that the first update() finds in the model. Throws ConfigError for
  // a number or a shape that does not fit.
  void load_masters(const std::vector<at::Tensor>& masters);

 private:
  void settle_masters();

  torch::optim::Optimizer* optimizer_;
  optim::FusedOptimizer* fused_;  // the same optimizer, of lockstep/optim; nullptr: libtorch's
  bool master_weights_;
  std::optional<MasterWeights> masters_ = {};  // of libtorch's
  bool settled_ = false;                       // the masters have their first values
};

}  // namespace lockstep::amp
