// A checkpoint of a run from an optimizer's state that is at hand, whole or not.
#pragma once

#include <vector>

#include "lockstep/optim/state.h"
#include "lockstep/train/training_state.h"

namespace lockstep::train {

struct OptimizerParts {
  optim::OptimizerState state;
  std::vector<at::Tensor> masters, averages;
};

// As the other of this name (training_state.h), and no collective. The tensors of `parts` may be of the device meta: so
// are they in the dict.
checkpoint::Value to_checkpoint(const TrainingState& state, const torch::nn::Module& model,
                                const optim::AnyOptimizer& optimizer, const OptimizerParts& parts,
                                const amp::LossScaler& scaler);

}  // namespace lockstep::train
