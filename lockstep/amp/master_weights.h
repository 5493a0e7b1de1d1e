// fp32 copies of 16-bit weights for any torch::optim::Optimizer (Micikevicius et al., ICLR 2018), as Apex's O2 keeps
// them: the optimizer steps the masters, and the model gets them rounded. The optimizers of lockstep/optim have masters
// of their own, which their one pass over memory updates together with the weights.
#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace lockstep::amp {

class MasterWeights {
 public:
  // Puts fp32 masters in the places of the optimizer's 16-bit parameters, with their values; the others stay. The
  // optimizer has no state yet (ConfigError).
  explicit MasterWeights(torch::optim::Optimizer& optimizer);

  // The masters' .grad become the model's gradients times `scale`, in fp32; so do, in place, the gradients of
  // parameters that have no master. A parameter without a gradient leaves its master none. Whether all were finite.
  bool take_gradients(double scale);
  // The model's weights become the masters, rounded to nearest even.
  void write_weights();
  // The other way round, after weights were loaded.
  void read_weights();
  void drop_model_gradients();

  const std::vector<at::Tensor>& masters() const { return masters_; }

 private:
  std::vector<at::Tensor> weights_, masters_;
  std::vector<at::Tensor> wide_;  // parameters without
};

}  // namespace lockstep::amp
