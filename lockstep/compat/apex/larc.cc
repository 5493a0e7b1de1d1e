#include "lockstep/compat/apex/larc.h"

#include <c10/core/GradMode.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/group_options.h"
#include "lockstep/optim/optimizer_ref.h"

namespace lockstep::apex::parallel {
namespace {

template <typename Options>
bool exchange_field(torch::optim::OptimizerOptions& options, double& value) {
  auto* own = dynamic_cast<Options*>(&options);
  if (own != nullptr) std::swap(own->weight_decay(), value);
  return own != nullptr;
}

bool exchange_option(torch::optim::OptimizerOptions& options, double& value) {
  auto* own = dynamic_cast<optim::GroupOptions*>(&options);
  if (own == nullptr) return false;
  for (const optim::NamedOption& option : own->to_pytorch()) {
    if (option.name != "weight_decay") continue;
    own->from_pytorch({{"weight_decay", value}});
    value = std::get<double>(option.value);
    return true;
  }
  return false;
}

// Sets a group's weight decay and returns the one before.
double exchange_weight_decay(torch::optim::OptimizerOptions& options, double value) {
  using namespace torch::optim;  // NOLINT(google-build-using-namespace)
  const bool found = exchange_option(options, value) || exchange_field<SGDOptions>(options, value) ||
                     exchange_field<AdamOptions>(options, value) || exchange_field<AdamWOptions>(options, value) ||
                     exchange_field<AdagradOptions>(options, value) || exchange_field<RMSpropOptions>(options, value);
  if (!found) throw ConfigError("LARC: an optimizer whose groups have no weight_decay that can be set");
  return value;
}

// The groups' own weight decay, taken off them until the end of the scope.
class WithoutDecay {
 public:
  explicit WithoutDecay(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    for (auto& group : optimizer_.param_groups()) decays_.push_back(exchange_weight_decay(group.options(), 0));
  }
  ~WithoutDecay() {
    for (size_t i = 0; i < decays_.size(); ++i) {
      exchange_weight_decay(optimizer_.param_groups()[i].options(), decays_[i]);
    }
  }
  WithoutDecay(const WithoutDecay&) = delete;
  WithoutDecay& operator=(const WithoutDecay&) = delete;

  const std::vector<double>& decays() const { return decays_; }

 private:
  torch::optim::Optimizer& optimizer_;
  std::vector<double> decays_;
};

}  // namespace

LARC::LARC(torch::optim::Optimizer& optimizer, const LarcOptions& options) : optimizer_(optimizer), options_(options) {
  if (options.trust_coefficient >= 0 && options.eps >= 0) return;
  throw ConfigError("LARC: trust_coefficient ", options.trust_coefficient, " and eps ", options.eps,
                    "; neither is below 0");
}

void LARC::scale_gradients(const torch::optim::OptimizerParamGroup& group, double weight_decay) const {
  const double lr = group.options().get_lr();
  for (const at::Tensor& parameter : group.params()) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    const double weight = lockstep::amp::multi_tensor_l2norm({parameter}).total;
    const double slope = lockstep::amp::multi_tensor_l2norm({gradient}).total;
    if (weight == 0 || slope == 0) continue;
    const double ratio = options_.trust_coefficient * weight / (slope + weight_decay * weight + options_.eps);
    gradient.add_(parameter, weight_decay).mul_(options_.clip ? std::min(ratio / lr, 1.0) : ratio);
  }
}

void LARC::step() {
  const WithoutDecay scope(optimizer_);
  {
    const c10::AutoGradMode no_grad(false);
    optim::gradients_of(optimizer_);  // two in one memory are taken apart
    const auto& groups = optimizer_.param_groups();
    for (size_t i = 0; i < groups.size(); ++i) scale_gradients(groups[i], scope.decays()[i]);
  }
  optimizer_.step();
}

}  // namespace lockstep::apex::parallel
