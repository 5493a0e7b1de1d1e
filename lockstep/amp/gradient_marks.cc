#include "lockstep/amp/gradient_marks.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "lockstep/optim/clip.h"
#include "lockstep/optim/held_gradient.h"

namespace lockstep::amp {
namespace {

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->version_counter().current_version();
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
        of.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(gradient.getIntrusivePtr()), version_of(gradient)});
      } else {
        of.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(c10::intrusive_ptr<c10::TensorImpl>()), 0});
      }
    }
  }
  marks_ = std::make_shared<const std::vector<std::vector<Mark>>>(std::move(marks));
}

GradientMarks::Found GradientMarks::Mark::look_at(const at::Tensor& now) const {
  const c10::TensorImpl* const before = gradient._unsafe_get_target();
  if (!now.defined()) return before == nullptr ? Found::kNone : Found::kGone;
  const bool same = now.unsafeGetTensorImpl() == before && version_of(now) == version;
  return same ? Found::kSame : Found::kChanged;
}

GradientMarks::Found GradientMarks::look_at(const at::Tensor& weight) const {
  for (size_t n = 0; n < networks_.size(); ++n) {
    const int64_t number = networks_[n]->find(weight);
    if (number >= 0) return (*marks_)[n][static_cast<size_t>(number)].look_at(weight.grad());
  }
  return Found::kUnknown;
}

bool GradientMarks::have_changed() const {
  for (size_t n = 0; n < networks_.size(); ++n) {
    const std::vector<at::Tensor>& weights = networks_[n]->all();
    for (size_t i = 0; i < weights.size(); ++i) {
      const Found found = (*marks_)[n][i].look_at(weights[i].grad());
      if (found == Found::kChanged || found == Found::kGone) return true;
    }
  }
  return false;
}

double GradientMarks::square_sum() const {
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients held;
  double sum = 0;
  for (const auto& network : networks_) {
    for (const at::Tensor& gradient : optim::gradients_of(network->all())) {
      const double norm = at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble).item<double>();
      sum += norm * norm;
    }
  }
  return sum;
}

int64_t GradientMarks::gradients() const {
  int64_t count = 0;
  for (const auto& network : networks_) {
    count += std::ranges::count_if(network->all(), [](const at::Tensor& each) { return each.grad().defined(); });
  }
  return count;
}

}  // namespace lockstep::amp
