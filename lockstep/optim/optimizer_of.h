// The members that all optimizers have in common: constructors, a name, and the way to make one over other parameters.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"

namespace lockstep::optim {

// The base of the optimizer class `Self` with options `O`. Throws ConfigError for groups whose options are of another
// type.
//
// `O` is a plain struct for designated initialisers, with PyTorch's names and defaults where it has them. It also has
//   kName          the optimizer's name
//   check()        throws ConfigError for a value out of range
//   fields()       the list of its fields, by which options are read from names (a command line's, a checkpoint's) and
//                  written under them
//   fixed()        further options of PyTorch's optimizer, each with the one value that describes ours: it is written
//                  for PyTorch, and a checkpoint with another value is refused
template <typename Self, typename O>
class OptimizerOf : public FusedOptimizer {
 public:
  using Options = O;

  // The options are those of groups without their own. Their rate is the optimizer's, to which all groups' rates keep
  // their ratio under set_lr().
  OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& groups, Options options);
  explicit OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& groups);
  explicit OptimizerOf(std::vector<at::Tensor> parameters, Options options = {});

  std::string_view name() const override { return Options::kName; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  static const Options& values_of(const torch::optim::OptimizerOptions& options) {
    return static_cast<const Group<Options>&>(options).values;
  }
};

// An optimizer's header declares its instance extern, and its source has it: programs need not compile what follows.

template <typename Self, typename O>
OptimizerOf<Self, O>::OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& groups, Options options)
    : FusedOptimizer(groups, [&] {
        auto group = std::make_unique<Group<Options>>(std::move(options));
        group->lr_scale = 1;
        return group;
      }()) {}

template <typename Self, typename O>
OptimizerOf<Self, O>::OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& groups)
    : FusedOptimizer(groups, std::make_unique<Group<Options>>(Options{})) {}

template <typename Self, typename O>
OptimizerOf<Self, O>::OptimizerOf(std::vector<at::Tensor> parameters, Options options)
    : OptimizerOf({torch::optim::OptimizerParamGroup(std::move(parameters))}, options) {}

template <typename Self, typename O>
std::unique_ptr<FusedOptimizer> OptimizerOf<Self, O>::over(
    const std::vector<std::vector<at::Tensor>>& parameters) const {
  if (!has_rate()) return std::make_unique<Self>(groups_over(parameters));
  return std::make_unique<Self>(groups_over(parameters), values_of(*defaults_));
}

}  // namespace lockstep::optim
