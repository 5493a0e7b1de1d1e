// An exponential moving average of each of some weights (Polyak and Juditsky, 1992), as torch.optim.swa_utils'
// AveragedModel with get_ema_multi_avg_fn keeps it: the first is a copy, then average = decay · average + (1 - decay) ·
// weight. Of a weight of 16 bits it is fp32: with the usual decays its moves are below what 16 bits can tell apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

namespace lockstep::optim {

// Weights are told apart by their numbers. One thread.
class WeightAverages {
 public:
  // For so many weights. 0 <= decay <= 1, else ConfigError.
  WeightAverages(double decay, size_t weights);

  // Lays average `number` out as `weight` is now and returns the share of the way to the new weight that the coming
  // pass has to move it: 1, a copy, where there was none yet.
  double prepare(size_t number, const at::Tensor& weight);

  // Each weight's; undefined where there is none yet.
  const std::vector<at::Tensor>& all() const { return averages_; }

  // Goes on from copies of `averages`. Throws ConfigError, which begins with `owner`, for other numbers or shapes.
  void load(std::string_view owner, const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& averages);

  // Gives the weights their averages' values, and at the next call their own back; a weight without an average stays.
  void exchange(const std::vector<at::Tensor>& weights);

 private:
  double decay_;
  std::vector<at::Tensor> averages_;
  std::vector<at::Tensor> own_;  // of weights that have their averages' values
};

}  // namespace lockstep::optim
