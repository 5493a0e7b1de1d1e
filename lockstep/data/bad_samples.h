// What becomes of samples that can't be read, where a run is not to stop at the first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/order.h"
#include "lockstep/data/read_sample.h"

namespace lockstep::data {

// A sample that can't be read. Name and reason are a line of UTF-8 each, as shown.h writes it.
struct BadSample {
  std::string name;   // Dataset::name_of
  std::string why;    // names it
  int64_t index = 0;  // in its data set: names may be equal
  bool operator==(const BadSample&) const = default;
};

// Puts other samples in the places of bad ones, or leaves the places empty. A bad sample is one whose read() throws
// DataError; whatever else it throws stops the reader. Immutable; any thread may call.
//
// The substitutes of a place are a permutation of the epoch's order, keyed by the seed, the epoch and the number of the
// sample that the place belongs to. The first one of them that can be read takes it, and is augmented by numbers of its
// own. So what a place holds is a function of the data, the seed and the place: ranks, threads and what was met before
// do not show.
class Substitutes {
 public:
  // No place meets more than `most` + 1 different bad samples: it stays empty then. They are more than a list that
  // passes over `most` takes (skipped_samples.h).
  Substitutes(std::shared_ptr<const Order> order, int64_t most) : order_(std::move(order)), most_(most) {}
  // Leaves the places of bad samples empty.
  static std::shared_ptr<const Substitutes> none();

  // Calls read(), which throws as Dataset::read, for the sample of a place or, if that is bad, for its substitutes.
  // Returns whether one of them has been read. Adds the bad ones to `bad`. Throws DataError if all samples are bad.
  bool read(const Dataset& dataset, const SampleRead& sample, std::vector<BadSample>& bad,
            const std::function<void(const SampleRead&)>& read) const;

 private:
  std::shared_ptr<const Order> order_;  // null: no sample is a substitute
  int64_t most_ = 0;
};

}  // namespace lockstep::data
