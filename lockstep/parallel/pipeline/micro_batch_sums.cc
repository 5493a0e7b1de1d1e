#include "lockstep/parallel/pipeline/micro_batch_sums.h"

#include <c10/core/GradMode.h>

#include <utility>

namespace lockstep::parallel {

MicroBatchSums::MicroBatchSums(const torch::nn::Module& stage, const std::vector<at::Tensor>& weights)
    : weights_(weights), buffers_(stage.buffers()), sums_(weights.size()) {}

void MicroBatchSums::after_first_forward() {
  for (const at::Tensor& each : buffers_) first_buffers_.push_back(each.detach().clone());
}

void MicroBatchSums::after_backward() {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < sums_.size(); ++i) {
    at::Tensor& gradient = weights_[i].mutable_grad();
    if (gradient.defined()) sums_[i].push(sums_[i].lanes(), std::exchange(gradient, at::Tensor()));
  }
}

void MicroBatchSums::finish() {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i].lanes() > 0) weights_[i].mutable_grad() = sums_[i].finish();
  }
  for (size_t i = 0; i < first_buffers_.size(); ++i) buffers_[i].copy_(first_buffers_[i]);
}

}  // namespace lockstep::parallel
