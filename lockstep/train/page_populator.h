// Backs memory with pages ahead of its first use, whose page faults would hold up a step.
#pragma once

#include <span>
#include <thread>
#include <vector>

namespace lockstep::train {

// A thread of a lower priority goes through the ranges, page by page. It leaves their content as it is, so they may be
// written meanwhile. The destructor ends it.
class PagePopulator {
 public:
  // The ranges begin at pages. Where the system can't do it, or has no more threads, nothing is done.
  explicit PagePopulator(std::vector<std::span<char>> ranges);

 private:
  std::jthread thread_;
};

}  // namespace lockstep::train
