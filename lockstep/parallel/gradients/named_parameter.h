// A model's parameters in order, each with its name and the kind of its gradients.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

namespace lockstep::parallel {

struct NamedParameter {
  std::string name;
  at::Tensor tensor;
  bool sparse = false;  // its gradients are sparse: it is the weight of an Embedding with sparse(true)
};

// The parameters of `module` in the order of registration. Throws ConfigError if there are none.
std::vector<NamedParameter> named_parameters(const torch::nn::Module& module);

// The parameters that require a gradient, in the same order. One that has several names is returned once, by the first.
std::vector<NamedParameter> trainable(const std::vector<NamedParameter>& parameters);

// The others, likewise.
std::vector<NamedParameter> frozen(const std::vector<NamedParameter>& parameters);

// Both lists, one after the other.
std::vector<NamedParameter> joined(std::vector<NamedParameter> first, const std::vector<NamedParameter>& second);

// The first three names, and how many more there are.
std::string some_of(const std::vector<std::string>& names);

// Throws ConfigError for one of those that are folded that requires no gradient any more.
void check_trained(const std::vector<NamedParameter>& parameters);
// Throws ConfigError for a parameter that requires a gradient and is not one of those that are folded.
[[noreturn]] void refuse_new(const std::string& name);

// The same parameters as their gradients are folded: of complex ones the real view, [..., 2].
std::vector<NamedParameter> real_views(std::vector<NamedParameter> parameters);
// The same of a parameter's gradient.
at::Tensor as_real(at::Tensor gradient);
// The inverse for a gradient of a complex parameter. The result shares its memory and is no autograd view, which
// zero_grad() could not detach.
at::Tensor as_complex(const at::Tensor& gradient);

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& parameters);

}  // namespace lockstep::parallel
