// Looks at the models and optimizers that MixedPrecision is given, before anything is changed.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <vector>

#include "lockstep/amp/opt_level.h"

namespace lockstep::amp {

// Throws ConfigError that names the first parameter that is in 16 bits already, on another device than the others, or
// in a DistributedDataParallel. Returns the device.
at::Device check_models(const std::vector<torch::nn::Module*>& models);

// Throws ConfigError where the device does not multiply matrices of the policy's dtype.
void check_device(at::Device device, const Policy& policy);

// Throws ConfigError for an optimizer over a tensor that no model has, or, where it gets masters, one with state.
void check_optimizers(const std::vector<torch::optim::Optimizer*>& optimizers,
                      const std::vector<torch::nn::Module*>& models, const Policy& policy);

// Keeps the models that are in mixed precision now, by their parameters, so that no model is twice.
class InitializedModels {
 public:
  // Throws ConfigError for one that is there already.
  explicit InitializedModels(const std::vector<torch::nn::Module*>& models);
  ~InitializedModels();
  InitializedModels(const InitializedModels&) = delete;
  InitializedModels& operator=(const InitializedModels&) = delete;

 private:
  std::vector<const void*> parameters_;
};

}  // namespace lockstep::amp
