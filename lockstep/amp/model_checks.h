// Checks of the models and optimizers that MixedPrecision gets, before it changes anything.
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "lockstep/amp/opt_level.h"
#include "lockstep/optim/optimizer_ref.h"

namespace lockstep::amp {

// Throws ConfigError that names the first parameter that is already in 16 bits, on another device than the others, or
// in a DistributedDataParallel. Returns the device.
at::Device check_models(const std::vector<torch::nn::Module*>& models);

// Throws ConfigError if the device does not multiply matrices of the policy's dtype.
void check_device(at::Device device, const Policy& policy);

// Throws ConfigError for an optimizer over a tensor that no model has, and, if the models are cast, for one that has
// taken a step.
void check_optimizers(const std::vector<optim::OptimizerRef>& optimizers, const std::vector<torch::nn::Module*>& models,
                      const Policy& policy);

class MixedPrecision;

// Registers models, by their parameters, as being in mixed precision, so that none is cast twice. Its destructor
// removes them again.
class InitializedModels {
 public:
  // Throws ConfigError for a model that is registered already.
  InitializedModels(const std::vector<torch::nn::Module*>& models, const MixedPrecision* owner);
  ~InitializedModels();
  InitializedModels(const InitializedModels&) = delete;
  InitializedModels& operator=(const InitializedModels&) = delete;

  // Returns the owner of the model that has this parameter; nullptr if none is registered.
  static const MixedPrecision* owner_of(const at::Tensor& parameter);

 private:
  std::vector<const void*> parameters_;
};

}  // namespace lockstep::amp
