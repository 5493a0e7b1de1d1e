// PowerSGD: a gradient seen as a matrix M travels as two thin ones, M ≈ P Qᵀ, and what that leaves out is added to the
// next step's gradient (Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression for
// distributed optimization", NeurIPS 2019).
//
// With W ranks and M the gradient of one of them, its error of the last step added: P = Σ M Q; P is orthogonalised;
// Q = Σ Mᵀ P; every rank's gradient becomes P Qᵀ, the sum over ranks; the error is M - P Qᵀ / W. Q is where the next
// step begins. Bits depend on the number of ranks.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/parallel/comm_hook.h"

namespace lockstep::parallel {

// The names and defaults of PyTorch's PowerSGDState.
struct PowerSgdOptions {
  int64_t matrix_approximation_rank = 1;
  int64_t start_powerSGD_iter = 1000;  // steps before it that are folded whole
  double min_compression_rate = 2;     // a matrix that would shrink less is folded whole
  bool use_error_feedback = true;      // needs the same buckets at every step
  bool warm_start = true;              // Q of the step before, not a new random one
  double orthogonalization_epsilon = 0;
  uint64_t random_seed = 0;

  void check() const;  // throws ConfigError
};

// Of floating-point gradients on the CPU or a GPU. Its state is of one DistributedDataParallel, and not in checkpoints:
// a resumed run begins with empty errors.
std::shared_ptr<CommHook> power_sgd_hook(const PowerSgdOptions& options);

// Whether an [n, m] matrix travels as [n, r] and [m, r] elements: min_compression_rate times fewer.
bool worth_compressing(int64_t n, int64_t m, const PowerSgdOptions& options);

// The columns of [n, r] made orthonormal, in place, by Gram and Schmidt's way.
void orthogonalize(const at::Tensor& matrix, double epsilon);

}  // namespace lockstep::parallel
