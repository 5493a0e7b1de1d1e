// Mistakes in a loop of one's own that a step finds at no cost: weights that were changed on some ranks only, step
// numbers that do not rise, and losses that are none.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/lane_generators.h"

namespace lockstep::parallel {

// Of one network. Used by the thread that runs the steps.
class StepGuard {
 public:
  explicit StepGuard(std::vector<NamedParameter> parameters) : parameters_(std::move(parameters)) {}

  // A number that depends on the bits of some elements of each weight on the CPU: a whole one below 2^40, so that those
  // of thousands of ranks can be added exactly.
  double fingerprint() const;

  // Called at a step's begin: whether the step before had the same number, and the weights were updated since. Then
  // random numbers would be drawn again.
  bool repeats(int64_t number) const;
  void end_step(int64_t number);

 private:
  int64_t versions() const;

  std::vector<NamedParameter> parameters_;
  int64_t number_ = -1;  // of the last step
  double last_fingerprint_ = 0;
  int64_t last_versions_ = 0;
};

// Throws ConfigError unless backward can begin from `loss`: a defined tensor of one floating-point element with a
// graph, in memory. `whose`: "step 3, lane 2".
void check_loss(const at::Tensor& loss, const std::string& whose);

// Throws ConfigError if a lane of a step that repeats() has drawn from a generator since it was seeded.
class DrawCheck {
 public:
  // With `active` false it does nothing. The generators outlive it.
  DrawCheck(bool active, const LaneGenerators& generators);
  void check(int64_t step) const;

 private:
  const LaneGenerators& generators_;
  std::vector<at::Tensor> seeded_;  // their states
};

}  // namespace lockstep::parallel
