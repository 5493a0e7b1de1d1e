#include "lockstep/optim/clip.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::optim {

double clip_factor(double total_norm, double max_norm) {
  const double factor = max_norm / (total_norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

namespace {

// The memory of dense gradients, as disjoint ranges of addresses.
class Memory {
 public:
  // Whether nobody has any of the tensor's memory, which is taken then.
  bool take(const at::Tensor& tensor) {
    int64_t span = 1;
    for (int64_t i = 0; i < tensor.dim(); ++i) span += (tensor.size(i) - 1) * tensor.stride(i);
    const auto* first = static_cast<const char*>(tensor.const_data_ptr());
    const auto* last = first + span * tensor.itemsize();
    const auto next = ranges_.lower_bound(first);
    if (next != ranges_.end() && next->first < last) return false;
    if (next != ranges_.begin() && std::prev(next)->second > first) return false;
    ranges_.emplace(first, last);
    return true;
  }

 private:
  std::map<const char*, const char*> ranges_;
};

}  // namespace

std::vector<at::Tensor> gradients_of(std::span<const at::Tensor> parameters) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  std::unordered_set<const c10::TensorImpl*> seen;  // a module under two names gives its parameters twice
  Memory memory;
  for (const at::Tensor& parameter : parameters) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second) continue;
    if (gradient.is_sparse() && !gradient.is_coalesced()) gradient = gradient.coalesce();
    const bool is_free = gradient.layout() == at::kStrided && hold_of(gradient) == nullptr && gradient.numel() > 0;
    if (is_free && !memory.take(gradient)) gradient = gradient.clone();
    gradients.push_back(gradient.is_sparse() ? gradient._values() : gradient);
  }
  return gradients;
}

double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm) {
  return clip_grad_norm(parameters, max_norm, [&] {
    const std::vector<at::Tensor> gradients = gradients_of(parameters);
    if (gradients.empty()) return 0.0;
    return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2).item().toDouble();
  });
}

double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm, const std::function<double()>& norm_of) {
  if (!(max_norm >= 0)) throw ConfigError("clip_grad_norm: the norm ", max_norm, " is not 0 or more");
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients = gradients_of(parameters);
  const double norm = norm_of();
  const double factor = clip_factor(norm, max_norm);
  if (factor == 1) return norm;
  // No operator may read held gradients, those of masters, and write others.
  const auto is_held = [](const at::Tensor& gradient) { return hold_of(gradient) != nullptr; };
  const auto others = std::stable_partition(gradients.begin(), gradients.end(), is_held);
  const std::vector<at::Tensor> of_masters(gradients.begin(), others), free(others, gradients.end());
  for (const auto& part : {of_masters, free}) {
    if (!part.empty()) at::_foreach_mul_(part, factor);
  }
  return norm;
}

void clip_grad_value(std::span<const at::Tensor> parameters, double clip_value) {
  if (!(clip_value >= 0)) throw ConfigError("clip_grad_value: the value ", clip_value, " is not 0 or more");
  at::NoGradGuard no_grad;
  for (at::Tensor& gradient : gradients_of(parameters)) gradient.clamp_(-clip_value, clip_value);
}

}  // namespace lockstep::optim
