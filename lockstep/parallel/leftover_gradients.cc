#include "lockstep/parallel/leftover_gradients.h"

#include <c10/core/GradMode.h>

namespace lockstep::parallel {

void LeftoverGradients::begin_step(size_t parameters) {
  common_.assign(parameters, {});
  local_.assign(parameters, {});
}

void LeftoverGradients::clear() noexcept {
  common_.clear();
  local_.clear();
}

std::vector<size_t> LeftoverGradients::local_ones() const {
  std::vector<size_t> parameters;
  for (size_t i = 0; i < local_.size(); ++i) {
    if (local_[i].defined()) parameters.push_back(i);
  }
  return parameters;
}

bool LeftoverGradients::add_common(std::vector<at::Tensor>& gradients) const {
  const c10::AutoGradMode no_grad(false);
  bool any = false;
  for (size_t i = 0; i < common_.size(); ++i) {
    if (!common_[i].defined()) continue;
    any = true;
    gradients[i] = common_[i].is_sparse() ? common_[i] + gradients[i] : gradients[i].add_(common_[i]);
  }
  return any;
}

}  // namespace lockstep::parallel
