#include "lockstep/parallel/step_checks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

constexpr uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio

void mix(uint64_t& state, uint64_t bits) {
  state = (state ^ bits) * kMix;
  state ^= state >> 32;
}

// The bits of the first, the middle and the last element, wherever those lie in memory.
void mix_elements(uint64_t& state, const at::Tensor& weight) {
  const auto size = static_cast<size_t>(weight.element_size());
  const auto* const data = static_cast<const char*>(weight.const_data_ptr());
  const auto last = static_cast<size_t>(weight.numel() - 1);
  for (const size_t element : std::array{size_t{0}, last / 2, last}) {
    uint64_t bits = 0;
    std::memcpy(&bits, data + element * size, std::min(size, sizeof bits));
    mix(state, bits);
  }
}

}  // namespace

double fingerprint(const std::vector<at::Tensor>& weights) {
  uint64_t state = 0;
  for (const at::Tensor& weight : weights) {
    if (weight.is_cpu() && weight.numel() > 0 && weight.is_non_overlapping_and_dense()) mix_elements(state, weight);
  }
  return static_cast<double>(state >> 24);
}

double modes_of(const torch::nn::Module& network) {
  uint64_t state = 0;
  network.apply([&state](const torch::nn::Module& each) { mix(state, each.is_training() ? 1 : 2); });
  return static_cast<double>(state >> 24);
}

void check_same_weights(double own, double sum, int ranks, const std::string& whose) {
  if (sum == own * ranks) return;
  throw ConfigError(
      whose,
      ": its weights and those of other ranks differ; they were changed on some ranks only, as by "
      "loading a file on one, or by updates of other options. Change them on all, or wrap the network "
      "anew afterwards; those that a sharded optimizer shares are one memory, which one rank writes, between "
      "barriers. An optimizer may also round otherwise on CPUs of another kind or with another "
      "number of threads: give all ranks the same OMP_NUM_THREADS, and ATEN_CPU_CAPABILITY=avx2 on "
      "machines of several kinds");
}

void check_loss(const at::Tensor& loss, const std::string& whose) {
  constexpr const char* kExpected = "; it returns the mean loss of the lane's samples, one number with a graph";
  if (!loss.defined()) throw ConfigError(whose, ": the loss is an undefined tensor", kExpected);
  if (loss.numel() != 1 || !loss.is_floating_point()) {
    throw ConfigError(whose, ": the loss is ", loss.scalar_type(), ' ', loss.sizes(), kExpected);
  }
  if (!loss.requires_grad()) {
    throw ConfigError(whose,
                      ": the loss has no graph; it was computed under NoGradGuard, from detached tensors, or from "
                      "frozen parameters alone");
  }
  if (loss.is_meta()) throw ConfigError(whose, ": the loss is on ", loss.device(), ", which computes nothing");
}

}  // namespace lockstep::parallel
