#include "lockstep/parallel/gradients/named_parameter.h"

#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

// Whether this part's weight gets sparse gradients.
bool gives_sparse(const torch::nn::Module& part) {
  const auto* embedding = part.as<torch::nn::Embedding>();
  const auto* bag = part.as<torch::nn::EmbeddingBag>();
  return (embedding != nullptr && embedding->options.sparse()) || (bag != nullptr && bag->options.sparse());
}

std::vector<NamedParameter> those(const std::vector<NamedParameter>& parameters, bool require_gradient) {
  std::vector<NamedParameter> kept;
  for (const auto& parameter : parameters) {
    const auto is_it = [&](const NamedParameter& other) { return other.tensor.is_same(parameter.tensor); };
    if (parameter.tensor.requires_grad() != require_gradient || std::any_of(kept.begin(), kept.end(), is_it)) continue;
    kept.push_back(parameter);
  }
  return kept;
}

}  // namespace

std::vector<NamedParameter> named_parameters(const torch::nn::Module& module) {
  std::vector<at::Tensor> sparse;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (gives_sparse(*part)) sparse.push_back(part->parameters(/*recurse=*/false)[0]);
  }
  if (gives_sparse(module)) sparse.push_back(module.parameters(/*recurse=*/false)[0]);
  std::vector<NamedParameter> parameters;
  for (const auto& item : module.named_parameters()) {
    const auto is_it = [&](const at::Tensor& other) { return other.is_same(item.value()); };
    parameters.push_back({item.key(), item.value(), std::any_of(sparse.begin(), sparse.end(), is_it)});
  }
  if (parameters.empty()) throw ConfigError("DistributedDataParallel: the module has no parameters");
  return parameters;
}

std::vector<NamedParameter> trainable(const std::vector<NamedParameter>& parameters) {
  return those(parameters, /*require_gradient=*/true);
}

std::vector<NamedParameter> frozen(const std::vector<NamedParameter>& parameters) {
  return those(parameters, /*require_gradient=*/false);
}

std::string some_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 3); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > 3 ? lockstep::cat(text, " and ", names.size() - 3, " more") : text;
}

void check_trained(const std::vector<NamedParameter>& parameters) {
  for (const auto& parameter : parameters) {
    if (parameter.tensor.requires_grad()) continue;
    throw ConfigError(parameter.name,
                      " required a gradient when DistributedDataParallel was made, and does not now; "
                      "make it anew after freezing");
  }
}

void refuse_new(const std::string& name) {
  throw ConfigError("DistributedDataParallel: ", name,
                    " requires a gradient now and did not when the module was wrapped, so it would not be folded; "
                    "wrap the module anew");
}

std::vector<NamedParameter> real_views(std::vector<NamedParameter> parameters) {
  for (auto& parameter : parameters) {
    if (parameter.tensor.is_complex()) parameter.tensor = at::view_as_real(parameter.tensor.detach());
  }
  return parameters;
}

at::Tensor as_real(at::Tensor gradient) {
  if (!gradient.is_complex()) return gradient;
  const c10::AutoGradMode no_grad(false);
  return at::view_as_real(gradient.resolve_conj().contiguous());
}

at::Tensor as_complex(const at::Tensor& gradient) { return at::view_as_complex(gradient).detach(); }

std::vector<at::Tensor> tensors_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<NamedParameter> joined(std::vector<NamedParameter> first, const std::vector<NamedParameter>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace lockstep::parallel
