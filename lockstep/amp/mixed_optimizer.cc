#include "lockstep/amp/mixed_optimizer.h"

#include <ATen/ops/clamp.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::amp {
namespace {

bool scale_in_place(const std::vector<at::Tensor>& gradients, double factor) {
  return multi_tensor_scale(gradients, gradients, factor);
}

constexpr const char* kNotFinite =
    "is not finite; MixedPrecision's step(), in place of the optimizer's own, skips this step";

void check_all(const std::vector<at::Tensor>& weights, double loss_scale) {
  for (const auto& weight : weights) {
    if (weight.grad().defined()) optim::check_held("amp", weight.grad(), loss_scale);
  }
}

// Frees the gradients of a loss of this scale for an optimizer that takes them as they are.
void release_all(const optim::OptimizerRef& optimizer, double loss_scale) {
  const auto parameters = optim::parameters_of(optimizer);
  check_all(parameters, loss_scale);
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) optim::release(parameter.grad());
  }
}

}  // namespace

MixedOptimizer::MixedOptimizer(const optim::OptimizerRef& optimizer, const Policy& policy, const ExactWeights& exact)
    : optimizer_(optimizer), master_weights_(policy.master_weights) {
  auto* ours = optimizer_.ours();
  if (ours == nullptr) {
    if (master_weights_) masters_ = std::make_unique<MasterWeights>(*optimizer_.libtorchs(), exact);
    return;
  }
  if (policy.cast_model) ours->follow_parameters();
  if (!master_weights_) return;
  ours->keep_masters();
  std::vector<at::Tensor> masters;
  for (const auto& parameter : ours->all_parameters()) {
    const auto found = exact.find(parameter.unsafeGetTensorImpl());
    masters.push_back(found == exact.end() ? at::Tensor() : found->second);
  }
  ours->load_masters(masters);
}

bool MixedOptimizer::take_gradients(double factor) {
  if (masters_) return masters_->take_gradients(factor);
  const optim::UseHeldGradients use;
  const bool finite = scale_in_place(optim::gradients_of(optimizer_), factor);
  for (const auto& parameter : optim::parameters_of(optimizer_)) {
    if (parameter.grad().defined()) optim::release(parameter.grad());
  }
  return finite;
}

void MixedOptimizer::drop_copied_gradients() {
  if (masters_) masters_->drop_model_gradients();
}

void MixedOptimizer::update(const optim::Update& update) {
  unscaled_ = false;
  if (is_fused()) return optimizer_.ours()->update(update);
  if (masters_) {
    masters_->check_gradients();
  } else {
    release_all(optimizer_, update.loss_scale);
  }
  const optim::UseHeldGradients use;
  const auto gradients = optim::gradients_of(optimizer_);
  if (update.grad_multiplier != 1) scale_in_place(gradients, update.grad_multiplier);
  if (std::isfinite(update.clip_value)) {
    const c10::AutoGradMode no_grad(false);
    for (const auto& gradient : gradients) {
      at::clamp_(const_cast<at::Tensor&>(gradient), -update.clip_value, update.clip_value);
    }
  }
  if (masters_) return masters_->step();
  optimizer_.step();
}

void MixedOptimizer::check_scaled() const {
  if (unscaled_) throw ConfigError("amp: step() after unscale(); give it what unscale() has returned");
}

void MixedOptimizer::take_and_update(optim::Update update) {
  check_scaled();
  if (copies_gradients()) {
    check_all(weights(), update.loss_scale);
    take_gradients(std::exchange(update.grad_multiplier, 1));
  }
  this->update(update);
}

void MixedOptimizer::unscale(double loss_scale) {
  if (unscaled_) throw ConfigError("amp: unscale() a second time before the optimizer's step");
  check_all(weights(), loss_scale);
  const auto parameters = optim::parameters_of(optimizer_);
  for (const auto& parameter : parameters) {
    if (loss_scale == 1 || copies_gradients() || !parameter.grad().defined()) continue;
    if (parameter.grad().element_size() >= 4) continue;
    throw ConfigError("amp: unscale(): the gradient of shape ", parameter.sizes(), " is ", parameter.grad().toString(),
                      ", in which small values would be lost; clip by step()'s options, or use one of libtorch's "
                      "optimizers at O2, whose masters have fp32 gradients");
  }
  const bool takes = loss_scale != 1 || copies_gradients();
  const bool finite = !takes || take_gradients(1 / loss_scale);
  unscaled_ = true;
  if (finite || loss_scale == 1) return;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) optim::hold(parameter.grad(), {.why = kNotFinite, .readable = true});
  }
}

int64_t MixedOptimizer::gradients() const {
  const auto all = weights();
  return std::count_if(all.begin(), all.end(), [](const at::Tensor& each) { return each.grad().defined(); });
}

void MixedOptimizer::zero_grad() {
  unscaled_ = false;
  if (!masters_) return optimizer_.zero_grad();
  masters_->zero_grad();
  masters_->drop_model_gradients();
}

std::vector<at::Tensor> MixedOptimizer::masters() const {
  if (masters_) return masters_->by_parameter();
  std::vector<at::Tensor> masters(optim::parameters_of(optimizer_).size());
  return is_fused() && master_weights_ ? optimizer_.ours()->masters() : masters;
}

void MixedOptimizer::for_each_master(const std::function<void(const at::Tensor&, const at::Tensor&)>& visit) const {
  if (masters_) return masters_->for_each(visit);
  const auto* whole = dynamic_cast<const optim::FusedOptimizer*>(optimizer_.ours());
  if (whole == nullptr) return;
  const auto weights = whole->all_parameters(), masters = whole->masters();
  for (size_t i = 0; i < masters.size(); ++i) {
    if (masters[i].defined()) visit(weights[i], masters[i]);
  }
}

void MixedOptimizer::hold_masters() const {
  if (masters_) masters_->hold_back();
}

std::vector<at::Tensor> MixedOptimizer::stepped() const {
  auto parameters = optim::parameters_of(optimizer_);
  const auto masters = this->masters();
  for (size_t i = 0; i < masters.size(); ++i) {
    if (masters[i].defined()) parameters[i] = masters[i];
  }
  return parameters;
}

std::vector<at::Tensor> MixedOptimizer::weights() const {
  auto weights = optim::parameters_of(optimizer_);
  if (!masters_) return weights;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> weight_of;
  masters_->for_each([&](const at::Tensor& weight, const at::Tensor& master) {
    weight_of.emplace(master.unsafeGetTensorImpl(), weight);
  });
  for (at::Tensor& each : weights) {
    const auto found = weight_of.find(each.unsafeGetTensorImpl());
    if (found != weight_of.end()) each = found->second;
  }
  return weights;
}

MastersByWeight MixedOptimizer::masters_by_weight() const {
  MastersByWeight found;
  const auto weights = this->weights(), masters = this->masters();
  for (size_t i = 0; i < masters.size(); ++i) {
    if (masters[i].defined()) found.emplace(weights[i].unsafeGetTensorImpl(), masters[i]);
  }
  return found;
}

void MixedOptimizer::load_masters_by_weight(const MastersByWeight& values) {
  if (!master_weights_) return;
  auto masters = weights();
  for (at::Tensor& each : masters) {
    const auto found = values.find(each.unsafeGetTensorImpl());
    each = found == values.end() || !optim::is_narrow(each) ? at::Tensor() : found->second;
  }
  load_masters(masters);
}

void MixedOptimizer::load_masters(const std::vector<at::Tensor>& masters) {
  const auto parameters = optim::parameters_of(optimizer_);
  if (masters.size() != parameters.size()) {
    throw ConfigError("amp: ", masters.size(), " masters given, the optimizer steps ", parameters.size(), " tensors");
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!masters[i].defined() || masters[i].sizes() == parameters[i].sizes()) continue;
    throw ConfigError("amp: master ", i, " is ", masters[i].sizes(), ", and was to be ", parameters[i].sizes());
  }
  const c10::AutoGradMode no_grad(false);
  if (masters_) masters_->follow_weights();        // those that are not loaded
  std::vector<at::Tensor> narrow(masters.size());  // those of 16-bit weights
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!masters[i].defined()) continue;
    if (is_fused() && master_weights_ && optim::is_narrow(parameters[i])) {
      narrow[i] = masters[i];
    } else {
      at::Tensor(parameters[i]).copy_(masters[i]);
    }
  }
  if (masters_) masters_->write_weights();
  if (is_fused() && master_weights_) optimizer_.ours()->load_masters(narrow);
}

}  // namespace lockstep::amp
