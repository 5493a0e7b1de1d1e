#include "lockstep/amp/mixed_optimizer.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/fused_optimizer.h"

namespace lockstep::amp {
namespace {

bool scale_in_place(const std::vector<at::Tensor>& gradients, double factor) {
  return multi_tensor_scale(gradients, gradients, factor);
}

}  // namespace

MixedOptimizer::MixedOptimizer(torch::optim::Optimizer& optimizer, bool master_weights)
    : optimizer_(&optimizer),
      fused_(dynamic_cast<optim::FusedOptimizer*>(&optimizer)),
      master_weights_(master_weights) {
  if (!master_weights) return;
  if (is_fused()) {
    fused_->keep_masters();
  } else {
    masters_.emplace(optimizer);
  }
}

bool MixedOptimizer::take_gradients(double factor) {
  return masters_ ? masters_->take_gradients(factor) : scale_in_place(gradients_of(*optimizer_), factor);
}

void MixedOptimizer::drop_copied_gradients() {
  if (masters_) masters_->drop_model_gradients();
}

// DistributedDataParallel broadcasts rank 0's weights, and a loop may load others, after the masters were made. A
// master that a weight is the rounded copy of stays: it may have been loaded as well.
void MixedOptimizer::settle_masters() {
  if (std::exchange(settled_, true) || !master_weights_) return;
  if (masters_) return masters_->read_weights();
  auto masters = fused_->masters();
  const auto weights = parameters_of(*optimizer_);
  for (size_t i = 0; i < masters.size(); ++i) {
    if (!masters[i].defined()) continue;
    const at::Tensor weight = weights[i].detach();
    masters[i] = at::where(masters[i].to(weight.scalar_type()) == weight, masters[i], weight.to(at::kFloat));
  }
  fused_->load_masters(masters);
}

void MixedOptimizer::update(const optim::Update& update) {
  settle_masters();
  if (is_fused()) return fused_->update(update);
  const auto gradients = gradients_of(*optimizer_);
  if (update.grad_multiplier != 1) scale_in_place(gradients, update.grad_multiplier);
  if (std::isfinite(update.clip_value)) {
    const c10::AutoGradMode no_grad(false);
    for (const auto& gradient : gradients) {
      at::clamp_(const_cast<at::Tensor&>(gradient), -update.clip_value, update.clip_value);
    }
  }
  optimizer_->step();
  if (masters_) masters_->write_weights();
}

void MixedOptimizer::take_and_update(optim::Update update) {
  if (copies_gradients()) take_gradients(std::exchange(update.grad_multiplier, 1));
  this->update(update);
}

void MixedOptimizer::zero_grad() {
  optimizer_->zero_grad();
  drop_copied_gradients();
}

std::vector<at::Tensor> MixedOptimizer::stepped() const {
  auto parameters = parameters_of(*optimizer_);
  if (!is_fused()) return parameters;
  const auto masters = fused_->masters();
  for (size_t i = 0; i < masters.size(); ++i) {
    if (masters[i].defined()) parameters[i] = masters[i];
  }
  return parameters;
}

MastersByWeight MixedOptimizer::masters_by_weight() const {
  MastersByWeight found;
  const auto weights = masters_ ? masters_->weights() : parameters_of(*optimizer_);
  const auto masters = masters_ ? masters_->masters() : is_fused() ? fused_->masters() : std::vector<at::Tensor>();
  for (size_t i = 0; i < masters.size(); ++i) {
    if (masters[i].defined()) found.emplace(weights[i].unsafeGetTensorImpl(), masters[i]);
  }
  return found;
}

void MixedOptimizer::load_masters_by_weight(const MastersByWeight& values) {
  const auto own = masters_by_weight();
  if (own.empty()) return;
  const c10::AutoGradMode no_grad(false);
  for (const auto& [weight, master] : own) {
    if (const auto found = values.find(weight); found != values.end()) at::Tensor(master).copy_(found->second);
  }
  if (masters_) masters_->write_weights();
  if (is_fused()) fused_->load_masters(fused_->masters());
  settled_ = true;
}

void MixedOptimizer::load_masters(const std::vector<at::Tensor>& masters) {
  const auto steps = stepped();
  if (masters.size() != steps.size()) {
    throw ConfigError("amp: ", masters.size(), " masters given, the optimizer steps ", steps.size(), " tensors");
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (masters[i].sizes() == steps[i].sizes()) continue;
    throw ConfigError("amp: master ", i, " is ", masters[i].sizes(), ", and was to be ", steps[i].sizes());
  }
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < steps.size(); ++i) steps[i].copy_(masters[i]);
  if (masters_) masters_->write_weights();
  if (is_fused() && master_weights_) fused_->load_masters(fused_->masters());
  settled_ = true;
}

}  // namespace lockstep::amp
