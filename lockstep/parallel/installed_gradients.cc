#include "lockstep/parallel/installed_gradients.h"

#include <ATen/ops/count_nonzero.h>

#include <string>

#include "lockstep/base/error.h"
#include "lockstep/parallel/gradients/ownership.h"

namespace lockstep::parallel {

void InstalledGradients::begin(int64_t number, int loss_id) {
  installed_.clear();
  number_ = number;
  loss_id_ = loss_id;
}

void InstalledGradients::add(const NamedParameter& parameter, const at::Tensor& gradient) {
  installed_.push_back({decltype(Installed::gradient)(gradient.getIntrusivePtr()), parameter.tensor._version()});
}

bool InstalledGradients::has(size_t index, const at::Tensor& gradient) const {
  return !installed_.empty() && installed_[index].gradient._unsafe_get_target() == gradient.unsafeGetTensorImpl();
}

void InstalledGradients::leave_to_rank(size_t index, const at::Tensor& parameter) {
  if (has(index, parameter.grad())) installed_[index].gradient.reset();
  own_gradient(parameter);
}

// libtorch's own SGD updates a parameter without a new version.
bool InstalledGradients::is_used(size_t index, const NamedParameter& parameter, const at::Tensor& gradient,
                                 int64_t number) const {
  const auto is_zero = [&] { return !gradient.is_sparse() && gradient.count_nonzero().item<int64_t>() == 0; };
  if (parameter.tensor._version() == installed_[index].version) return is_zero();
  if (number == number_ && number >= 0 && !is_zero()) {
    throw ConfigError("step ", number, ": ", parameter.name, " was written to between two runs of one step, whose ",
                      "gradients add up; if that was an update, give the next run another number, or call zero_grad() "
                      "after it; else write to weights (exchange_averages(), clamp_) before the step's first run");
  }
  return true;
}

void InstalledGradients::refuse_unused(const NamedParameter& parameter, int64_t number) const {
  const std::string whose = number_ == kNoNumber         ? "a backward pass by hand"
                            : number_ == kBeforeWrapping ? "a time before the network was wrapped"
                                                         : cat("step ", number_);
  throw ConfigError(
      "step ", number, ": .grad of ", parameter.name, " still holds the gradient of ", whose,
      "; call the module's zero_grad() after every update: an optimizer's leaves out parameters that it does not "
      "have, and one that no optimizer has is never updated. To add up the losses of one step, give run() one number");
}

void InstalledGradients::check_loss(int loss_id, int64_t number) const {
  if (loss_id == loss_id_ || loss_id == kNoLoss || loss_id_ == kNoLoss) return;
  throw ConfigError("step ", number, ": .grad holds gradients of loss ", loss_id_, ", and those of loss ", loss_id,
                    " can't be added, for each has a scale of its own; step and zero_grad() between them, return the "
                    "sum of both losses from one run(), or give both one loss_id");
}

void check_scale(const NamedParameter& parameter, double there, double added) {
  if (there == added) return;
  throw ConfigError(".grad of ", parameter.name, " holds the gradient of a loss times ", there,
                    ", to which that of a loss times ", added,
                    " can't be added; call zero_grad() after every update, and give all losses of a step one scale");
}

}  // namespace lockstep::parallel
