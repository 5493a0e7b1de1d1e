#include "lockstep/amp/cast_model.h"

#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>

#include "lockstep/amp/half_convolution.h"

namespace lockstep::amp {

bool is_batch_norm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr || module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

void cast_module(const torch::nn::Module& module, c10::ScalarType dtype) {
  if (dtype == at::kHalf) widen_slow_half_convolutions();
  const c10::AutoGradMode no_grad(false);
  for (auto tensors : {module.parameters(/*recurse=*/false), module.buffers(/*recurse=*/false)}) {
    for (auto& tensor : tensors) {
      if (!tensor.defined() || !tensor.is_floating_point()) continue;
      tensor.mutable_grad().reset();
      tensor.set_data(tensor.to(dtype));
    }
  }
}

void cast_model(torch::nn::Module& module, c10::ScalarType dtype, bool keep_batchnorm_fp32) {
  const auto cast = [&](const torch::nn::Module& part) {
    if (!(keep_batchnorm_fp32 && is_batch_norm(part))) cast_module(part, dtype);
  };
  cast(module);
  for (const auto& part : module.modules(/*include_self=*/false)) cast(*part);
}

ExactWeights cast_models(const std::vector<torch::nn::Module*>& models, const Policy& policy) {
  ExactWeights exact;
  if (!policy.cast_model) return exact;
  for (auto* model : models) {
    const auto parameters = model->parameters();
    std::vector<at::Tensor> before;
    for (const auto& parameter : parameters) before.push_back(parameter.detach());
    cast_model(*model, policy.dtype, policy.keep_batchnorm_fp32);
    for (size_t i = 0; i < before.size(); ++i) {
      if (parameters[i].scalar_type() == before[i].scalar_type()) continue;
      exact.emplace(parameters[i].unsafeGetTensorImpl(), before[i]);
    }
  }
  return exact;
}

}  // namespace lockstep::amp
