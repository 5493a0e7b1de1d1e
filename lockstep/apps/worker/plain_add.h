// The yardstick of bench allreduce: a loop that does nothing but add, and so shows the speed of the machine's memory.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::worker {

// One rank's share of a plain sum over as many arrays as there are ranks.
//
// A fold of n bytes on W ranks leaves n bytes of sums in each of W places: every rank reads its slice of n/W bytes from
// all W, and writes it to all W, so it reads n bytes and writes n bytes; all ranks together move 2·W·n. This loop moves
// the same: for its slice of n/W bytes it reads W arrays, adds, and writes the sum to all of them (for two ranks:
// s = a + b; a = s; b = s). It waits for nobody, and its arrays are its own.
class PlainAdd {
 public:
  PlainAdd(int64_t bytes, int ranks);

  void run();
  // Returns the bytes that all ranks' run() read and write together.
  static int64_t bytes_moved(int64_t bytes, int ranks) { return 2 * ranks * bytes; }

 private:
  std::vector<std::vector<float>> arrays_;
};

}  // namespace lockstep::worker
