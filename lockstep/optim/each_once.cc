#include "lockstep/optim/each_once.h"

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::optim {

std::vector<torch::optim::OptimizerParamGroup> each_once(const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  std::vector<torch::optim::OptimizerParamGroup> kept = groups;
  std::unordered_map<const c10::TensorImpl*, size_t> group_of;
  for (size_t g = 0; g < kept.size(); ++g) {
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& parameter : groups[g].params()) {
      if (parameter.is_complex()) {
        throw ConfigError("the optimizer takes no complex parameters, such as one of shape ", parameter.sizes(),
                          "; use one of libtorch's for it, or keep torch::view_as_real of it");
      }
      const auto [there, is_new] = group_of.emplace(parameter.unsafeGetTensorImpl(), g);
      if (is_new) parameters.push_back(parameter);
      if (there->second == g) continue;
      throw ConfigError("a parameter of shape ", parameter.sizes(), " is in two groups of the optimizer, ",
                        there->second, " and ", g, "; leave it out of one");
    }
    kept[g].params() = std::move(parameters);
  }
  return kept;
}

}  // namespace lockstep::optim
