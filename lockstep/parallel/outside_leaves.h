// Tensors that a loop trains and that no wrapped network has: a forgotten head, a learned weight of a loss.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::parallel {

// Tells them from inputs that need a gradient: those are other tensors each time, or keep their values. It looks at
// eight runs each at the beginning, then from run 8, 16, 32, … on, for a tensor may join later; a look walks the graph.
class OutsideLeaves {
 public:
  // Returns a leaf of the run's loss, or of what else it computes, that is not known and had another value in a run
  // before; undefined: it sees none.
  at::Tensor find_trained(const std::vector<at::Tensor>& roots, const std::function<bool(const at::Tensor&)>& is_known);

 private:
  struct Noted {
    c10::weak_intrusive_ptr<c10::TensorImpl> leaf;  // its address is not used again while this lives
    uint64_t value;
  };
  int64_t runs_ = 0;
  std::vector<Noted> noted_;
};

}  // namespace lockstep::parallel
