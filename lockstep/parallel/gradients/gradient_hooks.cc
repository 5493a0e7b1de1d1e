#include "lockstep/parallel/gradients/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::parallel {

using torch::autograd::PostAccumulateGradHook;
using torch::autograd::impl::set_post_acc_grad_hooks;

namespace {

// A tensor that has never required a gradient may have no place for one.
PostAccumulateGradHook* hook_of(const at::Tensor& tensor) {
  if (torch::autograd::impl::get_autograd_meta(tensor) == nullptr) return nullptr;
  return torch::autograd::impl::post_acc_grad_hooks(tensor).get();
}

}  // namespace

class GradientHooks::Hook final : public PostAccumulateGradHook {
 public:
  Hook(const GradientHooks& hooks, size_t parameter, bool frozen)
      : hooks_(hooks), parameter_(parameter), frozen_(frozen) {}
  void operator()(const torch::autograd::Variable&) override { hooks_.on_gradient_(parameter_); }
  bool is_frozen() const { return frozen_; }
  bool is_of(const GradientHooks& hooks) const { return &hooks_ == &hooks; }

 private:
  const GradientHooks& hooks_;
  size_t parameter_;
  bool frozen_;
};

GradientHooks::GradientHooks(std::vector<NamedParameter> parameters, OnGradient on_gradient)
    : parameters_(std::move(parameters)), on_gradient_(std::move(on_gradient)) {
  for (const auto& parameter : parameters_) {
    const auto* there = hook_of(parameter.tensor);
    if (there != nullptr && dynamic_cast<const Hook*>(there) == nullptr && parameter.tensor.requires_grad()) {
      throw ConfigError("DistributedDataParallel: ", parameter.name,
                        " has a post-accumulate-grad hook of its own, "
                        "and can have one only; use Tensor::register_hook for it");
    }
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& tensor = parameters_[i].tensor;
    const auto* there = hook_of(tensor);
    const auto* other = dynamic_cast<const Hook*>(there);
    const bool frozen = !tensor.requires_grad(), in_use = there != nullptr && (other == nullptr || !other->is_frozen());
    if (!frozen || !in_use) set_post_acc_grad_hooks(tensor, std::make_unique<Hook>(*this, i, frozen));
  }
}

GradientHooks::~GradientHooks() {
  for (const auto& parameter : parameters_) {
    const auto* hook = dynamic_cast<Hook*>(hook_of(parameter.tensor));
    if (hook != nullptr && hook->is_of(*this)) set_post_acc_grad_hooks(parameter.tensor, nullptr);
  }
}

}  // namespace lockstep::parallel
