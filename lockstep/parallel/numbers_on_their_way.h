// Numbers that were computed on a device, on their way to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace lockstep::parallel {

// Their copy is queued behind what computes them when this is made; reading waits for it. The tensor may change
// afterwards. Copies share the numbers. One thread.
class NumbersOnTheirWay {
 public:
  // `numbers`: of any dtype; of the CPU they are copied at once.
  explicit NumbersOnTheirWay(const at::Tensor& numbers);

  // Of the CPU, with the shape and the dtype of `numbers`.
  const at::Tensor& read() const;

 private:
  struct Copy;
  std::shared_ptr<Copy> copy_;
};

}  // namespace lockstep::parallel
