#include "lockstep/optim/optimizer_ref.h"

#include <torch/optim/adagrad.h>

#include <algorithm>

#include "lockstep/optim/clip.h"

namespace lockstep::optim {

// libtorch's Adagrad has state before its first step.
bool OptimizerRef::has_stepped() const {
  if (ours_ != nullptr) return ours_->has_stepped();
  return std::any_of(libtorchs_->state().begin(), libtorchs_->state().end(), [](const auto& entry) {
    const auto* adagrad = dynamic_cast<const torch::optim::AdagradParamState*>(entry.second.get());
    return adagrad == nullptr || adagrad->step() > 0;
  });
}

void OptimizerRef::step() const {
  if (ours_ != nullptr) return ours_->update({});
  libtorchs_->step();
}

void OptimizerRef::zero_grad() const {
  for (const auto& parameter : parameters_of(*this)) parameter.mutable_grad().reset();
}

std::vector<at::Tensor> parameters_of(const OptimizerRef& optimizer) {
  if (optimizer.ours() != nullptr) return optimizer.ours()->all_parameters();
  std::vector<at::Tensor> all;
  for (const auto& group : optimizer.libtorchs()->param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

std::vector<at::Tensor> gradients_of(const OptimizerRef& optimizer) { return gradients_of(parameters_of(optimizer)); }

}  // namespace lockstep::optim
