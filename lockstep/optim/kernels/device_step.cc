#include "lockstep/optim/kernels/device_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::optim::device {
namespace {

bool is_narrow(const Tensors& tensors) { return !tensors.empty() && tensors.front().element_size() < 4; }

// The tensors in fp32 or wider; themselves if they are that already.
Tensors wide(const Tensors& tensors) {
  if (!is_narrow(tensors)) return tensors;
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(at::empty_like(tensor, at::kFloat));
  at::_foreach_copy_(copies, tensors);
  return copies;
}

// Stores the results of wide tensors in those that they are of.
void store(const Tensors& from, const Tensors& to) {
  if (is_narrow(to)) at::_foreach_copy_(to, from);
}

// The gradients times `multiplier`, clipped. They may be the gradients themselves.
Tensors clipped(const Tensors& gradients, double multiplier, double clip) {
  Tensors g = wide(gradients);
  if (multiplier != 1) g = at::_foreach_mul(g, multiplier);
  if (!std::isfinite(clip)) return g;
  g = at::_foreach_clamp_max(g, clip);
  at::_foreach_clamp_min_(g, -clip);
  return g;
}

// Whether `tensor` can join the list `there`, for which nullptr stands for no tensor.
bool joins(const Tensors& there, const at::Tensor* tensor) {
  if (there.empty() || tensor == nullptr) return there.empty() && tensor == nullptr;
  return there.front().scalar_type() == tensor->scalar_type() && there.front().device() == tensor->device();
}

}  // namespace

bool Batch::takes(const Operands& operands, const Extras& extras) const {
  if (extras.clip != extras_.clip || extras.average_share != extras_.average_share) return false;
  for (size_t k = 0; k < states_.size(); ++k) {
    if (!joins(states_[k], operands.state[k])) return false;
  }
  return joins(parameters_, &operands.parameter) && joins(gradients_, &operands.gradient) &&
         joins(averages_, operands.average) && joins(rounded_, operands.rounded);
}

void Batch::add(const Operands& operands) {
  const auto push = [](Tensors& to, const at::Tensor* tensor) {
    if (tensor != nullptr) to.push_back(tensor->detach());
  };
  push(parameters_, &operands.parameter);
  push(gradients_, &operands.gradient);
  for (size_t k = 0; k < states_.size(); ++k) push(states_[k], operands.state[k]);
  push(averages_, operands.average);
  push(rounded_, operands.rounded);
}

void Batch::step(double multiplier, const TensorForm& form) const {
  Tensors p = wide(parameters_);
  States states;
  for (size_t k = 0; k < states.size(); ++k) states[k] = wide(states_[k]);
  form(p, clipped(gradients_, multiplier, extras_.clip), states);
  for (size_t k = 0; k < states.size(); ++k) store(states[k], states_[k]);
  store(p, parameters_);
  if (!rounded_.empty()) at::_foreach_copy_(rounded_, p);
  if (!averages_.empty()) at::_foreach_lerp_(averages_, wide(parameters_), extras_.average_share);
}

void StepQueue::run() {
  const at::NoGradGuard no_grad;
  for (const auto& each : pending_) each->run(overflow_);
  pending_.clear();
  for (const auto& then : when_done_) then();
  when_done_.clear();
}

void move_average(const at::Tensor& parameter, const at::Tensor& average, double share) {
  const at::NoGradGuard no_grad;
  average.detach().lerp_(wide({parameter.detach()}).front(), share);
}

Tensors decayed(const Tensors& p, const Tensors& g, double weight_decay) {
  return weight_decay == 0 ? g : at::_foreach_add(g, p, weight_decay);
}

at::Tensor norms(const Tensors& tensors, double order) {
  Tensors each = at::_foreach_norm(tensors, order);
  for (at::Tensor& norm : each) norm = norm.to(each.front().scalar_type());
  return at::stack(each);
}

Tensors scaled(const Tensors& tensors, const at::Tensor& factors) {
  return at::_foreach_mul(tensors, factors.to(tensors.front().scalar_type()).unbind());
}

double square_sum(const Tensors& gradients, double multiplier, const Extras& extras) {
  const at::NoGradGuard no_grad;
  std::vector<Tensors> alike;  // a list of foreach has one dtype and one device
  for (const at::Tensor& gradient : gradients) {
    const auto list =
        std::find_if(alike.begin(), alike.end(), [&](const Tensors& each) { return joins(each, &gradient); });
    (list == alike.end() ? alike.emplace_back() : *list).push_back(gradient);
  }
  double sum = 0;
  for (const Tensors& each : alike) {
    const at::Tensor own = norms(clipped(each, multiplier, extras.clip)).to(at::kDouble);
    sum += own.square().sum().item<double>();
  }
  return sum;
}

}  // namespace lockstep::optim::device
