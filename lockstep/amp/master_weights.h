// Master weights: fp32 copies of 16-bit weights for any torch::optim::Optimizer (Micikevicius et al., ICLR 2018), as
// Apex's O2 keeps them. The optimizer steps the masters, and the model gets them rounded. The optimizers of
// lockstep/optim have masters of their own, which they update together with the weights in one pass over memory.
#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <vector>

#include "lockstep/amp/cast_model.h"
#include "lockstep/optim/master_weights.h"

namespace lockstep::amp {

// The optimizer's gradients are held (optim/held_gradient.h), for its own step() would leave the model as it is.
// Parameters that are added to the optimizer later, or removed from it, are followed when gradients are taken.
class MasterWeights {
 public:
  // Replaces the optimizer's 16-bit parameters by fp32 masters, of their exact values if these are given; the others
  // stay. The optimizer outlives this. Throws ConfigError for one that has taken a step.
  explicit MasterWeights(torch::optim::Optimizer& optimizer, const ExactWeights& exact = {});

  // Sets the masters' .grad to the model's gradients times `scale`, in fp32. The gradients of parameters without a
  // master are multiplied in place. A master whose parameter has no gradient gets none. Returns whether all were
  // finite. The gradients can be read and clipped.
  bool take_gradients(double scale);
  // Steps the optimizer by those gradients, and rounds the masters into the model. Throws ConfigError if the optimizer
  // has other parameters than when they were taken.
  void step();
  // Throws ConfigError if no gradients were taken since hold_back().
  void check_gradients() const;
  // Drops the gradients of masters, and holds the optimizer back.
  void zero_grad();
  // Holds the optimizer back until take_gradients(), if its masters have no gradients: its step() throws.
  void hold_back() const;
  void drop_model_gradients();

  // Gives masters the values of weights that something else than step() has written, where they are not their rounded
  // copies.
  void follow_weights();
  // Rounds the masters into the model, after masters were written.
  void write_weights();

  void for_each(const std::function<void(const at::Tensor& weight, const at::Tensor& master)>& visit) const;
  std::vector<at::Tensor> masters() const;
  // The same by the optimizer's parameters, undefined for those without a master.
  std::vector<at::Tensor> by_parameter() const;

 private:
  struct Entry {
    at::Tensor weight, master;
    optim::LastSeen seen = {};  // the weight
  };

  bool is_current() const;
  void take_over(const ExactWeights& exact = {});
  Entry give_master(at::Tensor& parameter, const ExactWeights& exact);
  void move_state(const at::Tensor& weight, const at::Tensor& master);
  void hold_gradients() const;

  torch::optim::Optimizer& optimizer_;
  std::vector<at::Tensor> known_;  // the optimizer's parameters, masters among them
  std::vector<Entry> entries_;
  std::vector<Entry> removed_;    // from the optimizer, whose group may come back
  std::vector<at::Tensor> wide_;  // parameters without a master
};

}  // namespace lockstep::amp
