// Checks of the models and optimizers that MixedPrecision gets, before it changes anything.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <vector>

#include "lockstep/amp/opt_level.h"

namespace lockstep::amp {

// Throws ConfigError that names the first parameter that is already in 16 bits, on another device than the others, or
// in a DistributedDataParallel. Returns the device.
at::Device check_models(const std::vector<torch::nn::Module*>& models);

// Throws ConfigError if the device does not multiply matrices of the policy's dtype.
void check_device(at::Device device, const Policy& policy);

// Throws ConfigError for an optimizer over a tensor that no model has, and, if optimizers get masters, for one with
// state.
void check_optimizers(const std::vector<torch::optim::Optimizer*>& optimizers,
                      const std::vector<torch::nn::Module*>& models, const Policy& policy);

// Registers models, by their parameters, as being in mixed precision, so that none is cast twice. Its destructor
// removes them again.
class InitializedModels {
 public:
  // Throws ConfigError for a model that is registered already.
  explicit InitializedModels(const std::vector<torch::nn::Module*>& models);
  ~InitializedModels();
  InitializedModels(const InitializedModels&) = delete;
  InitializedModels& operator=(const InitializedModels&) = delete;

 private:
  std::vector<const void*> parameters_;
};

}  // namespace lockstep::amp
