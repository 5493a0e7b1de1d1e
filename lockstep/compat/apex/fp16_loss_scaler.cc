#include "lockstep/compat/apex/fp16_loss_scaler.h"

#include <cmath>

#include "lockstep/amp/multi_tensor.h"

namespace lockstep::apex::fp16_utils {
namespace {

constexpr double kLargest = 0x1p127;  // of fp32: there is no bound there

}  // namespace

LossScaler::LossScaler(double scale)
    : LossScaler(lockstep::amp::ScalerOptions{
          .enabled = true, .dynamic = false, .init_scale = scale, .max_scale = kLargest}) {}

bool LossScaler::has_overflow(const std::vector<at::Tensor>& parameters) const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return !std::isfinite(lockstep::amp::multi_tensor_l2norm(gradients).total);
}

void LossScaler::backward(const at::Tensor& loss) const { (loss.to(at::kFloat) * loss_scale()).backward(); }

DynamicLossScaler::DynamicLossScaler(const DynamicLossScalerOptions& options)
    : LossScaler(lockstep::amp::ScalerOptions{.enabled = true,
                                              .init_scale = options.init_scale,
                                              .growth_factor = options.scale_factor,
                                              .backoff_factor = 1 / options.scale_factor,
                                              .growth_interval = options.scale_window,
                                              .max_scale = kLargest}) {}

}  // namespace lockstep::apex::fp16_utils
