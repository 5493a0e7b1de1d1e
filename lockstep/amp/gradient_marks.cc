#include "lockstep/amp/gradient_marks.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/fnv.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/optim/kernels/square_sums.h"

namespace lockstep::amp {
namespace {

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

// The bits of the first, the middle and the last element; 0 where the host can't look.
uint64_t samples_of(const at::Tensor& tensor) {
  const bool readable =
      tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.numel() > 0 && tensor.is_non_overlapping_and_dense();
  if (!readable) return 0;
  const auto bytes = static_cast<size_t>(tensor.element_size());
  const auto* const first = static_cast<const char*>(tensor.unsafeGetTensorImpl()->data());
  const auto count = static_cast<size_t>(tensor.numel());
  uint64_t hash = kFnvSeed;
  for (const size_t place : {size_t{0}, count / 2, count - 1}) hash = fnv1a(hash, {first + place * bytes, bytes});
  return hash;
}

}  // namespace

MarkedWeights::MarkedWeights(std::vector<at::Tensor> weights) : weights_(std::move(weights)) {
  for (size_t i = 0; i < weights_.size(); ++i) {
    numbers_.emplace(weights_[i].unsafeGetTensorImpl(), static_cast<int64_t>(i));
  }
}

int64_t MarkedWeights::find(const at::Tensor& weight) const {
  const auto found = numbers_.find(weight.unsafeGetTensorImpl());
  return found == numbers_.end() ? -1 : found->second;
}

GradientMarks::GradientMarks(std::vector<std::shared_ptr<const MarkedWeights>> networks)
    : networks_(std::move(networks)) {
  std::vector<std::vector<Mark>> marks;
  for (const auto& network : networks_) {
    std::vector<Mark>& of = marks.emplace_back();
    of.reserve(network->all().size());
    for (const at::Tensor& weight : network->all()) {
      const at::Tensor& gradient = weight.grad();
      if (gradient.defined()) {
        of.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(gradient.getIntrusivePtr()), version_of(gradient),
                      samples_of(gradient)});
      } else {
        of.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(c10::intrusive_ptr<c10::TensorImpl>()), 0, 0});
      }
    }
  }
  marks_ = std::make_shared<const std::vector<std::vector<Mark>>>(std::move(marks));
}

GradientMarks::Found GradientMarks::Mark::look_at(const at::Tensor& now) const {
  const c10::TensorImpl* const before = gradient._unsafe_get_target();
  if (!now.defined()) return before == nullptr ? Found::kNone : Found::kGone;
  const bool same = now.unsafeGetTensorImpl() == before && version_of(now) == version && samples_of(now) == samples;
  return same ? Found::kSame : Found::kChanged;
}

GradientMarks::Found GradientMarks::look_at(const at::Tensor& weight) const {
  for (size_t n = 0; n < networks_.size(); ++n) {
    const int64_t number = networks_[n]->find(weight);
    if (number >= 0) return (*marks_)[n][static_cast<size_t>(number)].look_at(weight.grad());
  }
  return Found::kUnknown;
}

bool GradientMarks::have_changed(const std::function<bool(const at::Tensor& weight)>& expected) const {
  for (size_t n = 0; n < networks_.size(); ++n) {
    const std::vector<at::Tensor>& weights = networks_[n]->all();
    for (size_t i = 0; i < weights.size(); ++i) {
      const Found found = (*marks_)[n][i].look_at(weights[i].grad());
      if ((found == Found::kChanged || found == Found::kGone) && !expected(weights[i])) return true;
    }
  }
  return false;
}

double GradientMarks::square_sum(double loss_scale) const {
  double sum = 0;
  for (const auto& network : networks_) sum += square_sum_of_gradients(network->all(), loss_scale);
  return sum;
}

int64_t GradientMarks::gradients() const {
  int64_t count = 0;
  for (const auto& network : networks_) {
    count += std::ranges::count_if(network->all(), [](const at::Tensor& each) { return each.grad().defined(); });
  }
  return count;
}

double square_sum_of_gradients(std::span<const at::Tensor> weights, double loss_scale) {
  const c10::AutoGradMode no_grad(false);
  std::map<double, std::vector<at::Tensor>> by_scale;
  for (const at::Tensor& weight : weights) {
    if (weight.grad().defined()) by_scale[optim::loss_scale_of(weight.grad())].push_back(weight);
  }
  const optim::UseHeldGradients held;
  double sum = 0;
  for (const auto& [scale, of_scale] : by_scale) {
    const double multiplier = loss_scale / scale;
    std::vector<at::Tensor> on_device;
    for (const at::Tensor& each : optim::gradients_of(of_scale)) {
      const at::Tensor gradient = each.is_complex() ? at::view_as_real(each) : each;
      if (gradient.is_cpu()) {
        const bool dense = gradient.is_non_overlapping_and_dense();
        sum += optim::gradient_square_sum(dense ? gradient : gradient.contiguous(), multiplier);
      } else {
        on_device.push_back(gradient);
      }
    }
    if (on_device.empty()) continue;
    const at::Tensor norms = at::stack(at::_foreach_norm(on_device, 2, at::kDouble));
    sum += multiplier * multiplier * norms.square().sum().item<double>();
  }
  return sum;
}

}  // namespace lockstep::amp
