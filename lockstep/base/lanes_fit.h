// Which numbers of ranks a run's lanes may be divided by.
#pragma once

#include <bit>

namespace lockstep {

// Whether S lanes over W ranks give every rank a subtree of the fold (comm/fold_tree.h).
constexpr bool lanes_fit(int lanes, int ranks) {
  return ranks >= 1 && lanes >= ranks && lanes % ranks == 0 &&
         (ranks == 1 || std::has_single_bit(static_cast<unsigned>(lanes / ranks)));
}

}  // namespace lockstep
