// Low-precision gradients: those of weights that autocast has cast to bf16 or fp16, taken before backward casts them
// back to fp32. The fold then reads half the bytes, and the cast is spared. The values are the same, as widening is
// exact.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

// Parameters are numbered as in the list that the constructor gets. Only dense fp32 parameters on the CPU take part.
class LowPrecisionGradients {
 public:
  // Called on backward's thread with a gradient in bf16 or fp16, in the parameter's layout, which nobody writes to any
  // more. Returns whether it has taken the gradient: then backward neither casts nor accumulates it.
  using Take = std::function<bool(size_t parameter, const at::Tensor& gradient)>;

  LowPrecisionGradients(std::vector<NamedParameter> parameters, Take take);
  LowPrecisionGradients(const LowPrecisionGradients&) = delete;
  LowPrecisionGradients& operator=(const LowPrecisionGradients&) = delete;

  void begin_step();
  // Offers the gradients of the next backward from `loss`, of those parameters that the loss depends on through one
  // cast alone (graph_walk.h). The graph may outlive this object.
  void hook_casts(const at::Tensor& loss);
  // Returns whether the parameter's gradient was taken since the last call, so that a hook after the accumulation,
  // which runs all the same, finds nothing new.
  bool was_taken(size_t parameter);

 private:
  bool offer(size_t parameter, const at::Tensor& gradient);

  std::vector<NamedParameter> parameters_;
  std::vector<at::Tensor> tensors_;
  Take take_;
  std::vector<char> taken_;            // by parameter; a byte each, as other threads may read those of other devices
  std::shared_ptr<const Take> offer_;  // held weakly by the graphs' hooks
};

}  // namespace lockstep::parallel
