// The fp32 masters of 16-bit weights (Micikevicius et al., "Mixed precision training", ICLR 2018): what an optimizer
// steps, so that changes too small for 16 bits add up.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

namespace lockstep::optim {

bool is_narrow(const at::Tensor& weight);  // fp16 or bf16

// Weights are told apart by their numbers. One thread.
class MasterWeights {
 public:
  // For these weights, as they are.
  explicit MasterWeights(const std::vector<at::Tensor>& weights);

  // The master of `weight`, laid out as the weight is now. Made if there is none yet; undefined for a wide weight.
  const at::Tensor& prepare(size_t number, const at::Tensor& weight);

  // Each weight's; undefined for wide ones.
  const std::vector<at::Tensor>& all() const { return masters_; }

  // Goes on from copies of `masters`, of any floating-point type, and rounds them into the weights; undefined ones are
  // left alone. Throws ConfigError, which begins with `owner`, for other numbers or shapes, or one of a wide weight.
  void load(std::string_view owner, const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& masters);

  // Makes each narrow weight the rounded copy of its master.
  void round_into(const std::vector<at::Tensor>& weights) const;

 private:
  std::vector<at::Tensor> masters_;
};

}  // namespace lockstep::optim
