#include "lockstep/checkpoint/formats/pickle_memo.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kMostGap = 16;  // numbers that may be left out in the vector
constexpr uint64_t kTreeNodeBytes = 80;

}  // namespace

void PickleMemo::put(uint64_t key, const Item& item) {
  const bool is_new = find(key) == nullptr;
  if (key > dense_.size() + kMostGap) {
    if (is_new) budget_.charge(kTreeNodeBytes);
    sparse_.insert_or_assign(key, item);
  } else {
    while (dense_.size() <= key) {
      budget_.push(dense_, Item());
      present_.push_back(false);
    }
    dense_[key] = item;
    present_[key] = true;
  }
  count_ += is_new ? 1 : 0;
}

const Item* PickleMemo::find(uint64_t key) const {
  if (key < dense_.size() && present_[key]) return &dense_[key];
  const auto found = sparse_.find(key);
  return found == sparse_.end() ? nullptr : &found->second;
}

}  // namespace lockstep::checkpoint
