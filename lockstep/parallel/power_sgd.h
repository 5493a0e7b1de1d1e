// PowerSGD: a gradient, seen as a matrix M, travels as two thin matrices, M ≈ P Qᵀ. The error of this approximation is
// added to the next step's gradient (Vogels, Karimireddy and Jaggi, "PowerSGD: practical low-rank gradient compression
// for distributed optimization", NeurIPS 2019).
//
// There are W ranks, and M is one rank's gradient plus its error of the last step. P = Σ M Q, summed over ranks, and P
// is orthogonalised. Q = Σ Mᵀ P. Every rank's gradient becomes P Qᵀ, the sum over ranks, and its error M - P Qᵀ / W.
// The next step begins with this Q. A step in which some gradient of the network is not finite, and which may be
// skipped for it, leaves errors and Qs as they were. The bits depend on the number of ranks.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/parallel/comm_hook.h"

namespace lockstep::parallel {

// The names and defaults of PyTorch's PowerSGDState.
struct PowerSgdOptions {
  int64_t matrix_approximation_rank = 1;
  int64_t start_powerSGD_iter = 1000;  // the first so many steps fold gradients whole
  double min_compression_rate = 2;     // a matrix that would shrink less is folded whole
  bool use_error_feedback = true;      // needs the same buckets at every step
  bool warm_start = true;              // begins with Q of the step before, not with a new random one
  double orthogonalization_epsilon = 0;
  uint64_t random_seed = 0;

  void check() const;  // throws ConfigError
};

// Returns a hook for floating-point gradients on the CPU or a GPU. It serves one network, which may be
// wrapped anew, and keeps its world alive. Throws ConfigError for options out of range.
//
// Its state is the number of steps, each matrix' Q, which all ranks have alike, and every rank's error. Loaded on as
// many ranks it gives the bits of the run that went on. On another number of ranks each gets an equal share of the
// errors' sum, so that nothing is lost that the approximation has left out. The buckets must be the same.
std::shared_ptr<CommHook> power_sgd_hook(const PowerSgdOptions& options);

// Returns whether an [n, m] matrix is compressed: it has more than min_compression_rate times as many elements as [n,
// r] and [m, r] together.
bool worth_compressing(int64_t n, int64_t m, const PowerSgdOptions& options);

// Makes the columns of an [n, r] matrix orthonormal, in place, by the Gram-Schmidt process.
void orthogonalize(const at::Tensor& matrix, double epsilon);

}  // namespace lockstep::parallel
