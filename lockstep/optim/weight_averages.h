// The exponential moving averages of some weights (Polyak and Juditsky, 1992), as torch.optim.swa_utils' AveragedModel
// keeps them with get_ema_multi_avg_fn: the first is a copy, then average = decay · average + (1 - decay) · weight. The
// average of a 16-bit weight is fp32: with the usual decays it moves by less than 16 bits can tell apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "lockstep/optim/any_optimizer.h"

namespace lockstep::optim {

// The averages of some weights, which are told apart by their numbers. One thread.
class WeightAverages {
 public:
  // Averages `weights` weights. Throws ConfigError unless 0 <= decay <= 1.
  WeightAverages(double decay, size_t weights);

  // Lays average `number` out as `weight` is now. Returns the share of the way to the new weight by which the coming
  // pass has to move it: 1, a copy, where there was none yet.
  double prepare(size_t number, const at::Tensor& weight);

  // The averages by the weights' numbers; undefined where there is none yet.
  const std::vector<at::Tensor>& all() const { return averages_; }

  // Continues from copies of `averages`. Throws ConfigError that begins with `owner` for another number of them or
  // other shapes.
  void load(std::string_view owner, const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& averages);

  // Gives the weights the values of their averages, and on the next call their own back. A weight without an average
  // stays.
  void exchange(const std::vector<at::Tensor>& weights);
  // Whether the weights have the values of their averages.
  bool are_exchanged() const { return !own_.empty(); }

 private:
  double decay_;
  std::vector<at::Tensor> averages_;
  std::vector<at::Tensor> own_;  // the own values of weights that have their averages'
};

// Throws ConfigError for an optimizer whose weights have the values of their averages: `act` takes them for its own.
void check_own_weights(const AnyOptimizer& optimizer, std::string_view act);

}  // namespace lockstep::optim
