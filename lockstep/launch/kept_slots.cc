#include "lockstep/launch/kept_slots.h"

#include <string>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::launch {

KeptSlots::KeptSlots(int ranks, checkpoint::Keeper::Options options)
    : memory_(checkpoint::Slots::create(ranks)), slots_(std::make_shared<checkpoint::Slots>(memory_.get())) {
  options.on_saved = [this](const std::string& path) {
    if (Board* const board = board_.load()) board->saved.set(cat("checkpoint ", path));
  };
  keeper_.emplace(slots_, std::move(options));
  slots_->header().kept.store(1);
}

void KeptSlots::begin_attempt(Board* board, int ranks) {
  if (board != nullptr) slots_->begin_anew(ranks);
  board_.store(board);
}

}  // namespace lockstep::launch
