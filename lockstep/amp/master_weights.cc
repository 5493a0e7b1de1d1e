#include "lockstep/amp/master_weights.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"

namespace lockstep::amp {

MasterWeights::MasterWeights(torch::optim::Optimizer& optimizer) {
  if (!optimizer.state().empty()) {
    throw ConfigError(
        "amp: the optimizer has taken steps already; initialize before the first one, and load its state "
        "after that");
  }
  const c10::AutoGradMode no_grad(false);
  for (auto& group : optimizer.param_groups()) {
    for (auto& parameter : group.params()) {
      if (parameter.element_size() >= 4) {
        wide_.push_back(parameter);
        continue;
      }
      weights_.push_back(parameter);
      masters_.push_back(parameter.detach().to(at::kFloat).requires_grad_());
      parameter = masters_.back();
    }
  }
}

bool MasterWeights::take_gradients(double scale) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> from, to;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor& gradient = weights_[i].grad();
    if (!gradient.defined()) {
      masters_[i].mutable_grad().reset();
      continue;
    }
    if (!masters_[i].grad().defined()) masters_[i].mutable_grad() = at::empty_like(masters_[i]);
    from.push_back(gradient.strides() == masters_[i].strides() ? gradient
                                                               : at::empty_like(masters_[i]).copy_(gradient));
    to.push_back(masters_[i].grad());
  }
  for (const auto& parameter : wide_) {
    if (!parameter.grad().defined()) continue;
    from.push_back(parameter.grad());
    to.push_back(parameter.grad());
  }
  return multi_tensor_scale(from, to, scale);
}

void MasterWeights::write_weights() {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i].copy_(masters_[i]);
}

void MasterWeights::read_weights() {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < weights_.size(); ++i) masters_[i].copy_(weights_[i]);
}

void MasterWeights::drop_model_gradients() {
  for (auto& weight : weights_) weight.mutable_grad().reset();
}

}  // namespace lockstep::amp
