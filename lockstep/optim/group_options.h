// An options struct in the form that torch::optim::Optimizer keeps for each parameter group.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/optim/named_options.h"

namespace lockstep::optim {

class GroupOptions : public torch::optim::OptimizerOptions {
 public:
  // The ratio of the group's rate to that of AnyOptimizer::set_lr(). Unset: the ratio to the optimizer's own rate when
  // it is made, or later when the group is added. An optimizer without a rate of its own has that of its groups if they
  // are equal; else set_lr() throws.
  std::optional<double> lr_scale = {};

  virtual NamedOptions to_pytorch() const = 0;
  virtual void from_pytorch(const NamedOptions& named) = 0;  // throws ConfigError
  virtual void check() const = 0;                            // throws ConfigError
  // Sets momentum, or beta1; false if the optimizer has neither.
  virtual bool set_momentum(double momentum) = 0;
};

// The options of one group. `values` may be changed between steps.
template <typename Options>
class Group final : public GroupOptions {
 public:
  explicit Group(Options options) : values(std::move(options)) {}

  std::unique_ptr<torch::optim::OptimizerOptions> clone() const override { return std::make_unique<Group>(*this); }
  double get_lr() const override { return values.lr; }
  void set_lr(const double lr) override { values.lr = lr; }
  NamedOptions to_pytorch() const override { return write_options(values); }
  void from_pytorch(const NamedOptions& named) override { read_pytorch_options(named, values); }
  void check() const override { values.check(); }
  bool set_momentum(double momentum) override {
    if constexpr (requires { values.betas; }) {
      values.betas.first = momentum;
      return true;
    } else if constexpr (requires { values.momentum; }) {
      values.momentum = momentum;
      return true;
    } else {
      return false;
    }
  }

  Options values;
};

// Parameters with options of their own: param_group(biases, SgdOptions{.lr = 0.1}).
template <typename Options>
torch::optim::OptimizerParamGroup param_group(std::vector<at::Tensor> parameters, Options options,
                                              std::optional<double> lr_scale = {}) {
  auto group = std::make_unique<Group<Options>>(std::move(options));
  group->lr_scale = lr_scale;
  return {std::move(parameters), std::move(group)};
}

}  // namespace lockstep::optim
