#include "lockstep/compat/apex/optimizers.h"

namespace lockstep::apex::optimizers {

std::unique_ptr<optim::FusedOptimizer> FusedAdam(std::vector<at::Tensor> parameters, const FusedAdamOptions& options) {
  return FusedAdam(std::vector<optim::ParameterGroup>{{std::move(parameters), {}}}, options);
}

std::unique_ptr<optim::FusedOptimizer> FusedAdam(const std::vector<optim::ParameterGroup>& groups,
                                                 const FusedAdamOptions& options) {
  auto optimizer = optim::make_optimizer(options.adam_w_mode ? "adamw" : "adam", groups,
                                         {{"lr", options.lr},
                                          {"betas", options.betas},
                                          {"eps", options.eps},
                                          {"weight_decay", options.weight_decay},
                                          {"amsgrad", options.amsgrad}});
  if (options.master_weights) optimizer->keep_masters();
  return optimizer;
}

std::unique_ptr<optim::FusedOptimizer> FusedMixedPrecisionLamb(std::vector<at::Tensor> parameters,
                                                               const optim::LambOptions& options) {
  auto optimizer = std::make_unique<optim::Lamb>(std::move(parameters), options);
  optimizer->keep_masters();
  return optimizer;
}

}  // namespace lockstep::apex::optimizers
