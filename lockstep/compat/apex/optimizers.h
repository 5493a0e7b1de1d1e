// apex.optimizers, over lockstep/optim/rules. If an optimizer's own options have all of Apex's keywords that apply
// here, Apex's name is an alias of it: FusedLAMB(parameters, {.lr = 1e-3, .use_nvlamb = true}).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/optim/rules/adagrad.h"
#include "lockstep/optim/rules/lamb.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/rules/novograd.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::apex::optimizers {

using FusedSGD = optim::SGD;
using FusedAdagrad = optim::Adagrad;
using FusedLAMB = optim::Lamb;
using FusedNovoGrad = optim::NovoGrad;

struct FusedAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool adam_w_mode = true;  // AdamW, which decays the weights; false: Adam, which adds the decay to the gradient
  double weight_decay = 0;
  bool amsgrad = false;
  bool master_weights = false;  // 16-bit parameters get fp32 masters
};
// Makes optim::Adam or optim::AdamW. Throws ConfigError for an option out of range.
std::unique_ptr<optim::FusedOptimizer> FusedAdam(std::vector<at::Tensor> parameters,
                                                 const FusedAdamOptions& options = {});
// The same for parameter groups. Each group may override `options`, by Apex's names, except adam_w_mode and
// master_weights.
std::unique_ptr<optim::FusedOptimizer> FusedAdam(const std::vector<optim::ParameterGroup>& groups,
                                                 const FusedAdamOptions& options = {});

// Makes optim::Lamb, whose 16-bit parameters have fp32 masters.
std::unique_ptr<optim::FusedOptimizer> FusedMixedPrecisionLamb(std::vector<at::Tensor> parameters,
                                                               const optim::LambOptions& options = {});

}  // namespace lockstep::apex::optimizers
