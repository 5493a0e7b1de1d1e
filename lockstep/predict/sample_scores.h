// How well a network did on each sample of an evaluation, so that the worst can be looked at.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::predict {

struct RankedSample {
  int64_t index = 0;  // in its data set
  double score = 0;   // as SampleScores has it
  bool operator==(const RankedSample&) const = default;
};

// One thread.
class SampleScores {
 public:
  // Adds what a network said, scores [N, classes, …] (one class: of a sigmoid), and the true classes [N, …], int64. A
  // sample's score is the probability of its true class; of a mask the mean Dice of all classes but the first, where a
  // class that is neither there nor predicted counts 1. Throws ConfigError where these are no classes' scores and no
  // classes.
  void add(const at::Tensor& scores, const at::Tensor& target);

  // Of all samples added, in their order.
  const std::vector<double>& all() const { return all_; }

 private:
  std::vector<double> all_;
};

// The scores in the order of the samples first, first + 1, … but for those of `left_out`, which ascend, as ranked
// samples.
std::vector<RankedSample> ranked(const std::vector<double>& scores, int64_t first, std::span<const int64_t> left_out);

// The `most` worst: the lowest scores first, those that are no numbers before all; equal ones in the samples' order.
std::vector<RankedSample> worst_of(std::vector<RankedSample> samples, int64_t most);

}  // namespace lockstep::predict
