#include "lockstep/optim/optimizer_ref.h"

#include <torch/optim/adagrad.h>

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/error.h"
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

void check_listed_once(const OptimizerRef& optimizer) {
  if (optimizer.ours() != nullptr) return;
  std::unordered_map<const c10::TensorImpl*, size_t> places;
  const std::vector<at::Tensor> all = parameters_of(optimizer);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [first, is_new] = places.emplace(all[i].unsafeGetTensorImpl(), i);
    if (is_new) continue;
    throw ConfigError("a torch::optim optimizer has one tensor of shape ", all[i].sizes(), " as its parameters ",
                      first->second, " and ", i, ", and would update it twice a step: libtorch's parameters() lists a ",
                      "module that is registered twice as two; give it each parameter once, or use lockstep::optim's");
  }
}

std::vector<at::Tensor> gradients_of(const OptimizerRef& optimizer) { return gradients_of(parameters_of(optimizer)); }

}  // namespace lockstep::optim
