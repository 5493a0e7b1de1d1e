#include "lockstep/optim/master_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/slots.h"

namespace lockstep::optim {
namespace {

// Whose master of a weight it is, and its number there.
struct Place {
  const MasterWeights* owner;
  size_t number;
};

std::mutex places_mutex;
std::unordered_map<const c10::TensorImpl*, std::vector<Place>>& places() {
  static auto* const by_weight = new std::unordered_map<const c10::TensorImpl*, std::vector<Place>>;
  return *by_weight;  // it outlives static optimizers
}

}  // namespace

bool is_narrow(const at::Tensor& weight) {
  return weight.scalar_type() == at::kHalf || weight.scalar_type() == at::kBFloat16;
}

bool LastSeen::is_as_seen(const at::Tensor& weight) const {
  return data_ == weight.const_data_ptr() && version_ == weight._version();
}

void LastSeen::see(const at::Tensor& weight) {
  data_ = weight.const_data_ptr();
  version_ = weight._version();
}

at::Tensor following(const at::Tensor& master, const at::Tensor& weight) {
  const at::Tensor rounded = master.to(weight.scalar_type());
  return at::equal(rounded, weight) ? master : at::where(rounded == weight, master, weight.to(at::kFloat));
}

MasterWeights::MasterWeights(const std::vector<at::Tensor>& weights) {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights.size(); ++i) {
    add(i, weights[i]);
    if (is_narrow(weights[i])) masters_[i] = weights[i].detach().to(at::kFloat);
  }
}

void MasterWeights::add(size_t number, const at::Tensor& weight) {
  if (weights_.size() <= number) {
    weights_.resize(number + 1);
    masters_.resize(number + 1);
    seen_.resize(number + 1);
  }
  weights_[number] = weight;
  const std::lock_guard lock(places_mutex);
  places()[weight.unsafeGetTensorImpl()].push_back({this, number});
}

MasterWeights::~MasterWeights() {
  const std::lock_guard lock(places_mutex);
  for (const at::Tensor& weight : weights_) {
    const auto found = places().find(weight.unsafeGetTensorImpl());
    if (found == places().end()) continue;
    std::erase_if(found->second, [this](const Place& place) { return place.owner == this; });
    if (found->second.empty()) places().erase(found);
  }
}

std::vector<at::Tensor> MasterWeights::kept_of(std::span<const at::Tensor> weights) {
  std::vector<at::Tensor> masters;
  const std::lock_guard lock(places_mutex);
  for (const at::Tensor& weight : weights) {
    const auto found = places().find(weight.unsafeGetTensorImpl());
    if (found == places().end()) continue;
    for (const auto& [owner, number] : found->second) {
      if (owner->masters_[number].defined()) masters.push_back(owner->masters_[number]);
    }
  }
  return masters;
}

const at::Tensor& MasterWeights::prepare(size_t number, const at::Tensor& weight) {
  if (weights_.size() <= number || !weights_[number].defined()) add(number, weight);  // a group was added
  at::Tensor& master = masters_[number];
  if (!is_narrow(weight)) return master;
  at::NoGradGuard no_grad;
  master = ordered_as(weight, master.defined() ? master : weight.detach().to(at::kFloat));
  if (seen_[number].is_as_seen(weight)) return master;
  master = following(master, weight.detach());
  seen_[number].see(weight);
  return master;
}

void MasterWeights::settle(size_t number, const at::Tensor& weight) {
  if (masters_[number].defined()) seen_[number].see(weight);
}

void MasterWeights::load(std::string_view owner, const std::vector<at::Tensor>& weights,
                         const std::vector<at::Tensor>& masters) {
  if (masters.size() != weights.size()) {
    throw ConfigError(owner, ": masters of ", masters.size(), " weights, and there are ", weights.size());
  }
  for (size_t i = 0; i < masters.size(); ++i) {
    if (!masters[i].defined()) continue;
    const std::string label = cat(owner, ": master of parameter ", i);
    check_like(label, weights[i], {"master", masters[i]});
    if (!is_narrow(weights[i])) throw ConfigError(label, ": the weight is ", weights[i].toString(), ", its own master");
  }
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters.size(); ++i) {
    if (!masters[i].defined()) continue;
    masters_[i] = at::empty_like(weights[i], at::kFloat).copy_(masters[i]);
    weights[i].copy_(
        masters_[i]);  // the others' weights may have been written, and their masters follow at the next step
  }
}

void MasterWeights::round_into(const std::vector<at::Tensor>& weights) const {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < masters_.size(); ++i) {
    if (masters_[i].defined()) weights[i].copy_(masters_[i]);
  }
}

}  // namespace lockstep::optim
