// Whether what is to be equal on all ranks is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel::tensor {

// Of one layer. It compares the first eight inputs in training, and then those of each doubled number: a collective.
class EqualInputs {
 public:
  // Throws ConfigError, on all ranks, for inputs that differ by more than kernels of other machines do.
  void check(const at::Tensor& input, comm::Communicator& comm);

 private:
  int64_t calls_ = 0;
};

}  // namespace lockstep::parallel::tensor
