#include "lockstep/compat/apex/fp16_utils.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <torch/nn/utils/clip_grad.h>

#include "lockstep/amp/cast_model.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/clip.h"

namespace lockstep::apex::fp16_utils {
namespace {

int64_t elements_of(const std::vector<at::Tensor>& tensors) {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += tensor.numel();
  return sum;
}

void check_lists(const char* call, const std::vector<at::Tensor>& model_params,
                 const std::vector<at::Tensor>& master_params, bool flat_master) {
  const bool fits = flat_master ? master_params.size() == 1 && master_params[0].numel() == elements_of(model_params)
                                : master_params.size() == model_params.size();
  if (fits) return;
  throw ConfigError(call, ": ", model_params.size(), " parameters and ", master_params.size(),
                    flat_master ? " flat" : "", " masters do not fit each other");
}

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.detach().reshape({-1}));
  return at::cat(flat).to(at::kFloat);
}

}  // namespace

void convert_module(const torch::nn::Module& module, at::ScalarType dtype) {
  lockstep::amp::cast_module(module, dtype);
}

void convert_network(torch::nn::Module& network, at::ScalarType dtype) {
  lockstep::amp::cast_model(network, dtype, /*keep_batchnorm_fp32=*/true);
}

void BN_convert_float(const torch::nn::Module& module) {
  const bool has_weights = !module.parameters(/*recurse=*/false).empty();
  if (lockstep::amp::is_batch_norm(module) && has_weights) convert_module(module, at::kFloat);
  for (const auto& child : module.children()) BN_convert_float(*child);
}

ParamLists prep_param_lists(const torch::nn::Module& model, bool flat_master) {
  ParamLists lists;
  for (const at::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) lists.model_params.push_back(parameter);
  }
  if (!flat_master) {
    for (const at::Tensor& parameter : lists.model_params) {
      lists.master_params.push_back(parameter.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true));
    }
  } else {
    for (const at::Tensor& parameter : lists.model_params) {
      if (parameter.scalar_type() == lists.model_params[0].scalar_type()) continue;
      throw ConfigError("prep_param_lists: parameters of ", parameter.toString(), " and ",
                        lists.model_params[0].toString(), "; a flat master is for one dtype");
    }
    lists.master_params.push_back(flattened(lists.model_params).clone());
  }
  for (const at::Tensor& master : lists.master_params) master.requires_grad_();
  return lists;
}

void model_grads_to_master_grads(const std::vector<at::Tensor>& model_params,
                                 const std::vector<at::Tensor>& master_params, bool flat_master) {
  check_lists("model_grads_to_master_grads", model_params, master_params, flat_master);
  const c10::AutoGradMode no_grad(false);
  if (flat_master) {
    std::vector<at::Tensor> gradients;
    for (size_t i = 0; i < model_params.size(); ++i) {
      if (!model_params[i].grad().defined()) {
        throw ConfigError("model_grads_to_master_grads: parameter ", i, " has no gradient, which a flat master needs");
      }
      gradients.push_back(model_params[i].grad());
    }
    master_params[0].mutable_grad() = flattened(gradients);
    return;
  }
  for (size_t i = 0; i < model_params.size(); ++i) {
    const at::Tensor& gradient = model_params[i].grad();
    at::Tensor& master = master_params[i].mutable_grad();
    if (!gradient.defined()) {
      master.reset();
    } else {
      if (!master.defined()) master = at::empty_like(master_params[i]);
      master.copy_(gradient);
    }
  }
}

void master_params_to_model_params(const std::vector<at::Tensor>& model_params,
                                   const std::vector<at::Tensor>& master_params, bool flat_master) {
  check_lists("master_params_to_model_params", model_params, master_params, flat_master);
  const c10::AutoGradMode no_grad(false);
  int64_t first = 0;
  for (size_t i = 0; i < model_params.size(); ++i) {
    const at::Tensor& parameter = model_params[i];
    parameter.detach().copy_(flat_master ? master_params[0].narrow(0, first, parameter.numel()).view(parameter.sizes())
                                         : master_params[i]);
    first += parameter.numel();
  }
}

double to_python_float(const at::Tensor& tensor) { return tensor.item<double>(); }

double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type) {
  // torch's function has no norm of sparse gradients: it gets their values, as the gradients of others.
  std::vector<at::Tensor> dense;
  for (const at::Tensor& gradient : optim::gradients_of(parameters)) {
    dense.emplace_back(at::empty({0})).mutable_grad() = gradient;
  }
  return torch::nn::utils::clip_grad_norm_(dense, max_norm, norm_type);
}

}  // namespace lockstep::apex::fp16_utils
