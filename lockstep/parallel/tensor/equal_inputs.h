// Whether what is to be equal on all ranks is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel::tensor {

// What tells numbers from others, and from the same ones in another order: their sum, each with a sign that its place
// has drawn, and the root of the sum of their squares. Numbers that have changed places move the sum by about as much
// as the root, however many there are and however alike neighbours are; differences of rounding by their own size.
struct Fingerprint {
  double sum = 0, norm = 0;
};
Fingerprint fingerprint(const at::Tensor& values);

// Of one layer. It compares the first eight inputs in training, and then those of each doubled number: a collective.
class EqualInputs {
 public:
  // Throws ConfigError, on all ranks, for inputs that differ by more than kernels of other machines do.
  void check(const at::Tensor& input, comm::Communicator& comm);

 private:
  int64_t calls_ = 0;
};

}  // namespace lockstep::parallel::tensor
