#include "lockstep/amp/master_weights.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/optim/adagrad.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/optim/optimizer_ref.h"

namespace lockstep::amp {
namespace {

constexpr const char* kByItself =
    "is of an fp32 master, which the optimizer's own step() would not round into the model; step by amp's step(), "
    "which clips, too";

// An fp32 gradient for the values of a 16-bit one, in its master's memory order.
at::Tensor wide_like(const at::Tensor& gradient, const at::Tensor& master) {
  if (!gradient.is_sparse()) return at::empty_like(master);
  const at::Tensor values = at::empty_like(gradient._values(), at::kFloat);
  return at::_sparse_coo_tensor_unsafe(gradient._indices(), values, gradient.sizes(),
                                       values.options().layout(at::kSparse), /*is_coalesced=*/true);
}

at::Tensor values_of(const at::Tensor& gradient) { return gradient.is_sparse() ? gradient._values() : gradient; }

}  // namespace

MasterWeights::MasterWeights(torch::optim::Optimizer& optimizer, const ExactWeights& exact) : optimizer_(optimizer) {
  if (optim::OptimizerRef(optimizer).has_stepped()) {
    throw ConfigError(
        "amp: the optimizer has taken steps already; initialize before the first one, and load its state "
        "after that");
  }
  take_over(exact);
  zero_grad();
}

bool MasterWeights::is_current() const {
  auto known = known_.begin();
  for (const auto& group : optimizer_.param_groups()) {
    for (const auto& parameter : group.params()) {
      if (known == known_.end() || !parameter.is_same(*known++)) return false;
    }
  }
  return known == known_.end();
}

// Goes by the optimizer's groups as they are now: new 16-bit parameters get masters, and others keep theirs.
void MasterWeights::take_over(const ExactWeights& exact) {
  if (is_current() && !known_.empty()) return;
  std::unordered_map<const c10::TensorImpl*, Entry> known;  // by master
  for (auto* entries : {&entries_, &removed_}) {
    for (Entry& entry : *entries) known.emplace(entry.master.unsafeGetTensorImpl(), std::move(entry));
    entries->clear();
  }
  known_.clear();
  wide_.clear();
  for (auto& group : optimizer_.param_groups()) {
    for (auto& parameter : group.params()) {
      const auto found = known.find(parameter.unsafeGetTensorImpl());
      if (found != known.end()) {
        entries_.push_back(std::move(found->second));
        known.erase(found);
      } else if (parameter.element_size() < 4) {
        entries_.push_back(give_master(parameter, exact));
      } else {
        wide_.push_back(parameter);
      }
      known_.push_back(parameter);
    }
  }
  for (auto& [master, entry] : known) removed_.push_back(std::move(entry));
}

// Puts a master in the parameter's place in its group.
MasterWeights::Entry MasterWeights::give_master(at::Tensor& parameter, const ExactWeights& exact) {
  const c10::AutoGradMode no_grad(false);
  const auto found = exact.find(parameter.unsafeGetTensorImpl());
  const at::Tensor values = found == exact.end() ? parameter : found->second;
  const at::Tensor master = at::empty_like(parameter, at::kFloat).copy_(values).requires_grad_();
  move_state(parameter, master);
  return {std::exchange(parameter, master), master};
}

// libtorch's Adagrad makes its state with its parameters.
void MasterWeights::move_state(const at::Tensor& weight, const at::Tensor& master) {
  auto& state = optimizer_.state();
  const auto found = state.find(weight.unsafeGetTensorImpl());
  if (found == state.end()) return;
  auto moved = std::move(found->second);
  state.erase(found);
  if (auto* adagrad = dynamic_cast<torch::optim::AdagradParamState*>(moved.get())) {
    adagrad->sum(adagrad->sum().to(at::kFloat));
  }
  state[master.unsafeGetTensorImpl()] = std::move(moved);
}

bool MasterWeights::take_gradients(double scale) {
  take_over();
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients use;
  std::vector<at::Tensor> from, to;
  for (auto& [weight, master, seen] : entries_) {
    at::Tensor& gradient = weight.mutable_grad();
    at::Tensor& wide = master.mutable_grad();
    if (!gradient.defined()) {
      wide.reset();
      continue;
    }
    if (gradient.is_sparse()) gradient = gradient.coalesce();
    const bool fits =
        wide.defined() && !wide.is_sparse() && !gradient.is_sparse() && wide.strides() == master.strides();
    if (!fits) wide = wide_like(gradient, master);
    optim::release(wide);
    const bool alike = gradient.is_sparse() || gradient.strides() == master.strides();
    from.push_back(values_of(alike ? gradient : at::empty_like(master).copy_(gradient)));
    to.push_back(values_of(wide));
  }
  for (const at::Tensor& values : optim::gradients_of(wide_)) {
    from.push_back(values);
    to.push_back(values);
  }
  for (const at::Tensor& parameter : wide_) {
    if (parameter.grad().defined()) optim::release(parameter.grad());
  }
  const bool finite = multi_tensor_scale(from, to, scale);
  hold_gradients();
  return finite;
}

void MasterWeights::hold_gradients() const {
  for (const auto& entry : entries_) {
    if (entry.master.grad().defined()) optim::hold(entry.master.grad(), {.why = kByItself, .readable = true});
  }
}

void MasterWeights::step() {
  if (!is_current()) {
    throw ConfigError(
        "amp: the optimizer's parameters have changed since its gradients were taken; change its groups before the "
        "backward pass");
  }
  follow_weights();
  for (const auto& entry : entries_) {
    if (entry.master.grad().defined()) optim::release(entry.master.grad());
  }
  optimizer_.step();
  hold_gradients();
  write_weights();
}

void MasterWeights::zero_grad() {
  take_over();
  for (const auto& parameter : optim::parameters_of(optimizer_)) parameter.mutable_grad().reset();
  hold_back();
}

void MasterWeights::hold_back() const {
  const auto has_gradient = [](const Entry& entry) { return entry.master.grad().defined(); };
  if (entries_.empty() || std::any_of(entries_.begin(), entries_.end(), has_gradient)) return;
  const at::Tensor& first = entries_[0].master;
  first.mutable_grad() = at::zeros({}, first.options().requires_grad(false)).expand(first.sizes()).variable_data();
  optim::hold(first.grad(), {.why = kByItself});
}

void MasterWeights::check_gradients() const {
  if (entries_.empty()) return;
  const at::Tensor& first = entries_[0].master.grad();
  const optim::Hold* held = first.defined() ? optim::hold_of(first) : nullptr;
  if (held == nullptr || held->readable) return;
  throw ConfigError("amp: step() without gradients for the fp32 masters; backward the loss within scale_loss() before");
}

void MasterWeights::follow_weights() {
  const c10::AutoGradMode no_grad(false);
  for (auto& [weight, master, seen] : entries_) {
    if (!seen.is_as_seen(weight)) master.copy_(optim::following(master, weight));
  }
}

void MasterWeights::write_weights() {
  const c10::AutoGradMode no_grad(false);
  for (auto& [weight, master, seen] : entries_) {
    weight.copy_(master);
    seen.see(weight);
  }
}

void MasterWeights::drop_model_gradients() {
  for (const auto& entry : entries_) entry.weight.mutable_grad().reset();
}

void MasterWeights::for_each(const std::function<void(const at::Tensor&, const at::Tensor&)>& visit) const {
  for (const auto& entry : entries_) visit(entry.weight, entry.master);
}

std::vector<at::Tensor> MasterWeights::masters() const {
  std::vector<at::Tensor> all;
  for (const auto& entry : entries_) all.push_back(entry.master);
  return all;
}

std::vector<at::Tensor> MasterWeights::by_parameter() const {
  std::unordered_set<const c10::TensorImpl*> masters;
  for (const auto& entry : entries_) masters.insert(entry.master.unsafeGetTensorImpl());
  std::vector<at::Tensor> all = optim::parameters_of(optimizer_);
  for (at::Tensor& each : all) {
    if (!masters.contains(each.unsafeGetTensorImpl())) each.reset();
  }
  return all;
}

}  // namespace lockstep::amp
