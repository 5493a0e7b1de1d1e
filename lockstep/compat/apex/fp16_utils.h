// apex.fp16_utils: mixed precision by hand. Models are cast in place, so that optimizers and hooks keep their tensors.
// A cast drops the gradients. One thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::apex::fp16_utils {

// Casts a module's own floating-point parameters and buffers, without those of the modules within it.
void convert_module(const torch::nn::Module& module, at::ScalarType dtype);
// Casts a whole network but for its BatchNorms.
void convert_network(torch::nn::Module& network, at::ScalarType dtype);
// Casts each BatchNorm that has weights to fp32, `module` itself included.
void BN_convert_float(const torch::nn::Module& module);

// A module whose forward casts its input to fp16.
class tofp16Impl : public torch::nn::Module {
 public:
  at::Tensor forward(const at::Tensor& input) { return input.to(at::kHalf); }
};
TORCH_MODULE(tofp16);

// A network in fp16 but for its BatchNorms, whose forward casts floating-point tensors among its arguments to fp16.
// `Network` is a module holder or a shared pointer to a module.
template <typename Network>
class FP16Model : public torch::nn::Module {
 public:
  explicit FP16Model(Network network) : network_(std::move(network)) {
    convert_network(*network_, at::kHalf);
    register_module("network", network_);
  }

  template <typename... Inputs>
  auto forward(Inputs&&... inputs) {
    return network_->forward(narrow(std::forward<Inputs>(inputs))...);
  }

 private:
  template <typename Input>
  static decltype(auto) narrow(Input&& input) {
    if constexpr (std::is_convertible_v<Input, const at::Tensor&>) {
      const at::Tensor& tensor = input;
      return tensor.is_floating_point() ? tensor.to(at::kHalf) : at::Tensor(tensor);
    } else {
      return std::forward<Input>(input);
    }
  }

  Network network_;
};

// Apex's older name for it.
template <typename Network>
FP16Model<Network> network_to_half(Network network) {
  return FP16Model<Network>(std::move(network));
}

// The parameters of a model that are trained, and their fp32 masters: one for each, or a single flat one [elements].
struct ParamLists {
  std::vector<at::Tensor> model_params;
  std::vector<at::Tensor> master_params;
};
// Throws ConfigError where a flat master is asked for parameters of several dtypes.
ParamLists prep_param_lists(const torch::nn::Module& model, bool flat_master = false);

// Copies gradients to the masters' .grad, in fp32; a master of a parameter without one gets none. Throws ConfigError
// for lists that do not fit each other, and for a flat master where a parameter has no gradient.
void model_grads_to_master_grads(const std::vector<at::Tensor>& model_params,
                                 const std::vector<at::Tensor>& master_params, bool flat_master = false);
// Rounds the masters into the parameters. Throws ConfigError for lists that do not fit each other.
void master_params_to_model_params(const std::vector<at::Tensor>& model_params,
                                   const std::vector<at::Tensor>& master_params, bool flat_master = false);

// Returns the number in a tensor of one element.
double to_python_float(const at::Tensor& tensor);

// Clips the gradients of all parameters together, in place, and returns their norm before; norm_type may be infinity.
double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2);

}  // namespace lockstep::apex::fp16_utils
