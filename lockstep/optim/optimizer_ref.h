// Any optimizer, by reference: libtorch's, one of lockstep/optim, or a sharded one.
#pragma once

#include <torch/optim/optimizer.h>

#include <concepts>
#include <vector>

#include "lockstep/optim/any_optimizer.h"

namespace lockstep::optim {

template <typename T>
concept IsOptimizer = std::derived_from<T, AnyOptimizer> || std::derived_from<T, torch::optim::Optimizer>;

// Made of an optimizer or a pointer to one, which outlives it.
class OptimizerRef {
 public:
  template <IsOptimizer T>
  OptimizerRef(T& optimizer) {
    if constexpr (std::derived_from<T, AnyOptimizer>) {
      ours_ = &optimizer;
    } else {
      ours_ = dynamic_cast<AnyOptimizer*>(&optimizer);
      if (ours_ == nullptr) libtorchs_ = &optimizer;
    }
  }
  template <IsOptimizer T>
  OptimizerRef(T* optimizer) : OptimizerRef(*optimizer) {}

  // One of the two is nullptr.
  AnyOptimizer* ours() const { return ours_; }
  torch::optim::Optimizer* libtorchs() const { return libtorchs_; }

  auto operator<=>(const OptimizerRef&) const = default;

  bool has_stepped() const;
  // Takes a step of its own, by the gradients as they are.
  void step() const;
  // Makes all gradients undefined.
  void zero_grad() const;

 private:
  AnyOptimizer* ours_ = nullptr;
  torch::optim::Optimizer* libtorchs_ = nullptr;
};

// Return the tensors that an optimizer has as its parameters, through all groups, and their gradients without the
// undefined ones. Of a sparse gradient it is the values, after equal rows were added up in .grad.
std::vector<at::Tensor> parameters_of(const OptimizerRef& optimizer);
// Throws ConfigError for an optimizer of libtorch's that has a parameter twice, and would update it twice a step: its
// Module::parameters() lists a module that is registered twice as two, which PyTorch's doesn't. Ours have each once.
void check_listed_once(const OptimizerRef& optimizer);
std::vector<at::Tensor> gradients_of(const OptimizerRef& optimizer);

}  // namespace lockstep::optim
