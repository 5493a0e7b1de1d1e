// Master weights: fp32 copies of 16-bit weights for any torch::optim::Optimizer (Micikevicius et al., ICLR 2018), as
// Apex's O2 keeps them. The optimizer steps the masters, and the model gets them rounded. The optimizers of
// lockstep/optim have masters of their own, which they update together with the weights in one pass over memory.
#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace lockstep::amp {

class MasterWeights {
 public:
  // Replaces the optimizer's 16-bit parameters by fp32 masters of the same values; the others stay. Throws ConfigError
  // for an optimizer that has state.
  explicit MasterWeights(torch::optim::Optimizer& optimizer);

  // Sets the masters' .grad to the model's gradients times `scale`, in fp32. The gradients of parameters without a
  // master are multiplied in place. A master whose parameter has no gradient gets none. Returns whether all were
  // finite.
  bool take_gradients(double scale);
  // Copies the masters into the model's weights, rounded to nearest even.
  void write_weights();
  // Copies the model's weights into the masters, after weights were loaded.
  void read_weights();
  void drop_model_gradients();

  const std::vector<at::Tensor>& masters() const { return masters_; }
  const std::vector<at::Tensor>& weights() const { return weights_; }  // the model's, of the masters

 private:
  std::vector<at::Tensor> weights_, masters_;
  std::vector<at::Tensor> wide_;  // parameters without a master
};

}  // namespace lockstep::amp
