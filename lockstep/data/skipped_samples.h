// The list of the samples that a run has passed over, which all its ranks keep alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/data/bad_samples.h"

namespace lockstep::data {

// Each bad sample once, by its name and its index, in the order in which they were met, whatever the number of ranks.
// One thread.
class SkippedSamples {
 public:
  // Returns all ranks' texts, by rank. A collective that is cheap where all are empty. Null: there is one rank.
  using Gather = std::function<std::vector<std::string>(const std::string& own)>;

  // At most `most` samples are passed over, 1 or more.
  explicit SkippedSamples(int64_t most, Gather gather = {});

  int64_t most() const { return most_; }
  const std::vector<BadSample>& all() const { return all_; }

  // How many the run has met: those of all(), or more where add() has refused some. The same on all ranks.
  int64_t met() const { return std::max(met_, std::ssize(all_)); }

  // Adds what this rank met for its part of a step or of an evaluation: ranks' parts are contiguous, in their order.
  // Returns what is new, on any rank. A collective. Throws DataError on all ranks that names all of them, with the list
  // as it was, if there are more than `most` then.
  std::vector<BadSample> add(const std::vector<BadSample>& own);

  // Continues with the list of a run that is resumed. Throws ConfigError if it has more than `most` samples.
  void restore(std::vector<BadSample> all);

 private:
  int64_t most_;
  Gather gather_;
  std::vector<BadSample> all_;
  int64_t met_ = 0;
};

// The reasons, each on a line of its own.
std::string lines_of(const std::vector<BadSample>& samples);

}  // namespace lockstep::data
