// Where the nodes of a run keep its folder.
#pragma once

#include <algorithm>
#include <vector>

namespace lockstep::train {

// Ranks, in ascending order.
struct RunDisks {
  std::vector<int> savers = {0};   // those that have a folder of the run, and save there
  std::vector<int> sources = {0};  // those whose disk has the run from which it goes on, or may have a part of it

  static bool has(const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }
};

}  // namespace lockstep::train
