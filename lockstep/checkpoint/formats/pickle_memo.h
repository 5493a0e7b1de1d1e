// The memo of the pickle interpreter: what later operations recall by number.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "lockstep/checkpoint/formats/pickle_heap.h"

namespace lockstep::checkpoint {

// Python's picklers number from 0 upwards, so items are kept in a vector; numbers far from it go to a tree, which no
// choice of numbers makes slow.
class PickleMemo {
 public:
  explicit PickleMemo(MemoryBudget& budget) : budget_(budget) {}

  void put(uint64_t key, const Item& item);
  void put_next(const Item& item) { put(count_, item); }  // as Python: under the number of items so far
  const Item* find(uint64_t key) const;                   // nullptr if there is none; valid until the next put()

 private:
  MemoryBudget& budget_;
  std::vector<Item> dense_;
  std::vector<bool> present_;  // of dense_
  std::map<uint64_t, Item> sparse_;
  uint64_t count_ = 0;
};

}  // namespace lockstep::checkpoint
