// The launcher's memory for snapshots, with its keeper: they outlive the ranks, and the attempts at a run.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "lockstep/base/board.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"

namespace lockstep::launch {

// One thread, besides the keeper's.
class KeptSlots {
 public:
  // Throws IoError.
  KeptSlots(int ranks, checkpoint::Keeper::Options options);

  int descriptor() const { return memory_.get(); }  // for the ranks
  checkpoint::SnapshotHeader& header() const { return slots_->header(); }
  checkpoint::Keeper& keeper() { return *keeper_; }

  // Prepares for the ranks of an attempt, whose board learns what is saved. No rank of an earlier attempt lives, and
  // the keeper is at rest. The board stays until the next call, or until null is given.
  void begin_attempt(Board* board, int ranks);

 private:
  std::atomic<Board*> board_ = nullptr;
  Descriptor memory_;
  std::shared_ptr<checkpoint::Slots> slots_;
  std::optional<checkpoint::Keeper> keeper_;  // last: its thread uses the others
};

}  // namespace lockstep::launch
