#include "lockstep/optim/weight_averages.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/master_weights.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/slots.h"

namespace lockstep::optim {
namespace {

// A copy: the way from memory that holds a NaN would be one, too, however short.
at::Tensor new_average(const at::Tensor& weight) {
  const auto options = weight.options().dtype(is_narrow(weight) ? at::kFloat : weight.scalar_type());
  return at::empty_like(weight, options).copy_(weight.detach());
}

}  // namespace

WeightAverages::WeightAverages(double decay, size_t weights) : decay_(decay), averages_(weights) {
  if (!(decay >= 0 && decay <= 1)) throw ConfigError("an average of weights with decay ", decay, ": not from 0 to 1");
}

double WeightAverages::prepare(size_t number, const at::Tensor& weight) {
  if (averages_.size() <= number) averages_.resize(number + 1);  // a group was added
  at::Tensor& average = averages_[number];
  const bool first = !average.defined();
  average = first ? new_average(weight) : ordered_as(weight, average);
  return first ? 1 : 1 - decay_;
}

void WeightAverages::load(std::string_view owner, const std::vector<at::Tensor>& weights,
                          const std::vector<at::Tensor>& averages) {
  if (averages.size() != weights.size()) {
    throw ConfigError(owner, ": averages of ", averages.size(), " weights, and there are ", weights.size());
  }
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> loaded(averages.size());
  for (size_t i = 0; i < averages.size(); ++i) {
    if (!averages[i].defined()) continue;
    check_like(cat(owner, ": average of parameter ", i), weights[i], {"average", averages[i]});
    loaded[i] = new_average(weights[i]).copy_(averages[i]);
  }
  averages_ = std::move(loaded);
}

void WeightAverages::exchange(const std::vector<at::Tensor>& weights) {
  at::NoGradGuard no_grad;
  const bool back = are_exchanged();
  own_.resize(averages_.size());
  for (size_t i = 0; i < averages_.size(); ++i) {
    if (!averages_[i].defined()) continue;
    if (!back) own_[i] = weights[i].clone();
    weights[i].copy_(back ? own_[i] : averages_[i]);
  }
  if (back) own_.clear();
}

void check_own_weights(const AnyOptimizer& optimizer, std::string_view act) {
  if (!optimizer.has_exchanged_averages()) return;
  throw ConfigError(optimizer.name(), ": ", act,
                    " while the weights have the values of their averages; call exchange_averages() again before");
}

}  // namespace lockstep::optim
