#include "lockstep/parallel/gradients/low_precision_gradients.h"

#include <torch/csrc/autograd/function_hook.h>

#include "lockstep/parallel/gradients/graph_walk.h"

namespace lockstep::parallel {
namespace {

using torch::autograd::variable_list;

// Runs before the node that casts a gradient back to the parameter's type.
class CastHook final : public torch::autograd::FunctionPreHook {
 public:
  CastHook(size_t parameter, std::weak_ptr<const LowPrecisionGradients::Take> offer)
      : parameter_(parameter), offer_(std::move(offer)) {}
  variable_list operator()(const variable_list& gradients) override {
    const auto offer = offer_.lock();
    const bool taken = offer != nullptr && gradients[0].defined() && (*offer)(parameter_, gradients[0]);
    return taken ? variable_list(1) : gradients;
  }

 private:
  size_t parameter_;
  std::weak_ptr<const LowPrecisionGradients::Take> offer_;
};

bool takes_part(const NamedParameter& parameter) {
  return !parameter.sparse && parameter.tensor.is_cpu() && parameter.tensor.scalar_type() == at::kFloat;
}

}  // namespace

LowPrecisionGradients::LowPrecisionGradients(std::vector<NamedParameter> parameters, Take take)
    : parameters_(std::move(parameters)),
      tensors_(tensors_of(parameters_)),
      take_(std::move(take)),
      taken_(parameters_.size()),
      offer_(std::make_shared<Take>(
          [this](size_t parameter, const at::Tensor& gradient) { return offer(parameter, gradient); })) {}

void LowPrecisionGradients::begin_step() { taken_.assign(parameters_.size(), 0); }

void LowPrecisionGradients::hook_casts(const at::Tensor& loss) {
  const auto casts = lone_casts(loss, tensors_);
  for (size_t i = 0; i < casts.size(); ++i) {
    if (casts[i] != nullptr && takes_part(parameters_[i])) {
      casts[i]->add_pre_hook(std::make_unique<CastHook>(i, offer_));
    }
  }
}

// A gradient that is not taken is cast, and comes again as fp32.
bool LowPrecisionGradients::offer(size_t parameter, const at::Tensor& gradient) {
  const bool low_precision = gradient.scalar_type() == at::kBFloat16 || gradient.scalar_type() == at::kHalf;
  if (!low_precision || gradient.layout() != at::kStrided || !gradient.is_cpu() ||
      gradient.strides() != tensors_[parameter].strides() || !take_(parameter, gradient)) {
    return false;
  }
  taken_[parameter] = 1;
  return true;
}

bool LowPrecisionGradients::was_taken(size_t parameter) {
  const bool taken = taken_[parameter] != 0;
  taken_[parameter] = 0;
  return taken;
}

}  // namespace lockstep::parallel
