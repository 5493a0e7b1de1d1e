// The optimizer of a model in mixed precision, with the fp32 masters that it steps.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lockstep/amp/master_weights.h"
#include "lockstep/amp/opt_level.h"
#include "lockstep/optim/optimizer_ref.h"

namespace lockstep::amp {

using MastersByWeight = std::unordered_map<c10::TensorImpl*, at::Tensor>;

// One thread. The optimizer outlives it. A libtorch optimizer's groups may change between steps.
class MixedOptimizer {
 public:
  // Made after the models were cast, as the policy says. Gives the optimizer's 16-bit parameters fp32 masters if it
  // says so, with these exact values. A collective for a sharded optimizer. Throws ConfigError for an optimizer that
  // has taken a step.
  MixedOptimizer(const optim::OptimizerRef& optimizer, const Policy& policy, const ExactWeights& exact);

  const optim::OptimizerRef& optimizer() const { return optimizer_; }
  // Whether update() multiplies the gradients in fp32 within its pass, so that 16-bit ones can stay scaled until then.
  bool is_fused() const { return optimizer_.ours() != nullptr; }
  // Whether the optimizer steps masters with a .grad of their own, which take_gradients() fills.
  bool copies_gradients() const { return masters_ != nullptr; }

  // Multiplies the gradients by `factor`: those of masters as they are copied, the others in place. Returns whether all
  // were finite.
  bool take_gradients(double factor);
  // Makes the 16-bit gradients that take_gradients() has copied undefined.
  void drop_copied_gradients();

  // Steps the optimizer. If copies_gradients(), take_gradients() must have taken the gradients before. For libtorch's
  // optimizers the gradients are multiplied and clipped in place. Throws ConfigError for gradients of another loss
  // scale than the update's.
  void update(const optim::Update& update);
  // Takes the gradients that backward left, and steps the optimizer. Throws ConfigError for gradients of another loss
  // scale than the update's, and after unscale().
  void take_and_update(optim::Update update);
  // Whether that takes Update::overflow, and how such an update ends.
  bool takes_overflow() const { return is_fused() && optimizer_.ours()->takes_overflow(); }
  void end_update(bool overflow) { optimizer_.ours()->end_update(overflow); }
  // Takes the loss scale out of the gradients, so that they can be changed before update(): those of masters, or the
  // parameters' own. Gradients that are not finite are held until zero_grad(). Throws ConfigError for gradients of
  // another loss scale, and for 16-bit ones, of which small ones would be lost.
  void unscale(double loss_scale);
  void zero_grad();
  // How many parameters have a gradient.
  int64_t gradients() const;
  // Throws ConfigError after unscale(): the step is to be given what that has returned.
  void check_scaled() const;

  // Forgets that unscale() was called, where the step is skipped.
  void skip() { unscaled_ = false; }

  // The model's parameters that the optimizer updates, through all groups, with or without masters.
  std::vector<at::Tensor> weights() const;
  // Returns the tensors that the optimizer steps, by parameter through all groups: its masters, or the parameters that
  // have none. They share the optimizer's memory. Of a sharded optimizer they are whole on rank 0: a collective.
  std::vector<at::Tensor> stepped() const;
  // Returns the masters by parameter through all groups: undefined where there is none. As stepped() otherwise.
  std::vector<at::Tensor> masters() const;
  // Returns the masters, by the model's weight, as masters(). The way back copies those of these values whose weights
  // have masters into the masters, and rounds them into the model.
  MastersByWeight masters_by_weight() const;
  void load_masters_by_weight(const MastersByWeight& values);
  // Calls visit(weight, master) for each master, except those of a sharded optimizer, of which ranks have slices.
  void for_each_master(const std::function<void(const at::Tensor&, const at::Tensor&)>& visit) const;
  // Holds libtorch's optimizer back where no gradients were taken for its masters (MasterWeights).
  void hold_masters() const;
  // Copies these, one for each of stepped() and of equal shape, into stepped(), and rounds them into the model.
  // Undefined ones are skipped. A collective for a sharded optimizer. Throws ConfigError for a number or a shape that
  // does not fit.
  void load_masters(const std::vector<at::Tensor>& masters);

 private:
  optim::OptimizerRef optimizer_;
  bool master_weights_;
  bool unscaled_ = false;                   // since the last update
  std::unique_ptr<MasterWeights> masters_;  // of one of libtorch's
};

}  // namespace lockstep::amp
