#include "lockstep/parallel/pipeline/stage_gradients.h"

#include <ATen/ops/count_nonzero.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::parallel {
namespace {

std::vector<NamedParameter> trained(const torch::nn::Module& stage) {
  if (stage.parameters().empty()) return {};  // a stage may have none
  return trainable(named_parameters(stage));
}

bool is_zero(const at::Tensor& gradient) {
  return !gradient.is_sparse() && gradient.count_nonzero().item<int64_t>() == 0;
}

}  // namespace

StageGradients::StageGradients(const torch::nn::Module& stage)
    : parameters_(trained(stage)), weights_(std::make_shared<amp::MarkedWeights>(tensors_of(parameters_))) {}

void StageGradients::check_weights(const torch::nn::Module& stage, const std::string& whose) const {
  const std::vector<at::Tensor> now = tensors_of(trained(stage));
  const auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
  if (std::ranges::equal(now, weights(), same)) return;
  throw ConfigError(whose, ": ", now.size(), " weights are trained now, and ", weights().size(),
                    " were when the pipeline was made, or others; make it anew after freezing or adding weights");
}

StageGradients::Fate StageGradients::fate_of(size_t index, bool has_replicas) const {
  const NamedParameter& parameter = parameters_[index];
  const at::Tensor& there = parameter.tensor.grad();
  if (!installed_.has(index, there)) {
    if (is_zero(there)) return Fate::kDropped;
    if (has_replicas) {
      throw ConfigError("pipeline: .grad of ", parameter.name,
                        " has what no run() has left, which replicas would not fold; zero_grad() before run()");
    }
  } else {
    if (installed_.is_used(index, parameter, there, step_)) return Fate::kDropped;
    const bool same_step = step_ == installed_.number();
    if (!same_step && !std::isfinite(square_sum_)) return Fate::kDropped;  // of a step that was skipped
    if (!same_step) installed_.refuse_unused(parameter, step_);
    if (optim::loss_scale_of(there) != 1) installed_.check_loss(loss_id_, step_);
  }
  check_scale(parameter, optim::loss_scale_of(there), loss_scale_);
  return Fate::kAside;
}

uint64_t StageGradients::writes() const {
  uint64_t sum = 0;
  for (const at::Tensor& weight : weights()) {
    const at::Tensor& gradient = weight.grad();
    if (!gradient.defined()) continue;
    sum += reinterpret_cast<uintptr_t>(gradient.unsafeGetTensorImpl()) + 1 + static_cast<uint64_t>(gradient._version());
  }
  return sum;
}

void StageGradients::begin(int64_t step, int loss_id, double loss_scale, bool has_replicas) {
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients use;
  step_ = step;
  loss_id_ = loss_id;
  loss_scale_ = loss_scale;
  std::vector<at::Tensor> aside(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& there = parameters_[i].tensor.grad();
    if (there.defined() && fate_of(i, has_replicas) == Fate::kAside) aside[i] = there;
  }
  aside_ = std::move(aside);
  for (const at::Tensor& weight : weights()) weight.mutable_grad().reset();
}

void StageGradients::fold(comm::Communicator& replicas, const std::string& label) const {
  std::map<at::ScalarType, std::vector<at::Tensor>> by_dtype;
  for (const NamedParameter& parameter : parameters_) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (!gradient.defined() || gradient.layout() != at::kStrided) {
      throw ConfigError("pipeline: ", parameter.name, " has ", gradient.defined() ? "a sparse gradient" : "no gradient",
                        ", which replicas can't fold; freeze it, or use it in each step");
    }
    by_dtype[gradient.scalar_type()].push_back(gradient);
  }
  for (auto& [dtype, gradients] : by_dtype) {
    replicas.fold(gradients, {.label = label, .step = static_cast<uint64_t>(step_)})->wait();
  }
}

void StageGradients::install() {
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients use;
  installed_.begin(step_, loss_id_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].tensor.mutable_grad();
    if (aside_[i].defined()) gradient = gradient.defined() ? gradient.add_(aside_[i]) : aside_[i];
    if (gradient.defined()) optim::hold_scaled(gradient, loss_scale_);
    installed_.add(parameters_[i], gradient);
  }
}

void StageGradients::end(double square_sum) {
  square_sum_ = square_sum;
  aside_.clear();
}

void StageGradients::restore() noexcept {
  for (size_t i = 0; i < aside_.size(); ++i) parameters_[i].tensor.mutable_grad() = aside_[i];
  aside_.clear();
}

}  // namespace lockstep::parallel
