#include "lockstep/loop/weights_check.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/base/xxh3.h"

namespace lockstep::loop {

std::string hash_of_weights(const torch::nn::Module& network) {
  Xxh3 hash;
  for (const at::Tensor& weight : network.parameters()) {
    if (!weight.is_cpu() || weight.layout() != at::kStrided) continue;
    const at::Tensor dense =
        weight.detach().is_non_overlapping_and_dense() ? weight.detach() : weight.detach().contiguous();
    hash.add(dense.const_data_ptr(), dense.nbytes());
  }
  return hex(hash.value());
}

std::string find_not_finite(const torch::nn::Module& network) {
  const at::NoGradGuard no_grad;
  for (const auto& item : network.named_parameters()) {
    const at::Tensor& weight = item.value();
    const auto type = weight.scalar_type();
    const bool is_known = type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf;
    if (!is_known || !weight.is_cpu() || weight.layout() != at::kStrided || weight.numel() == 0) continue;
    const auto [least, most] = at::aminmax(weight);  // a NaN is both
    if (!std::isfinite(least.item<double>()) || !std::isfinite(most.item<double>())) return item.key();
  }
  return "";
}

}  // namespace lockstep::loop
