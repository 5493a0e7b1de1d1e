// The launcher's memory for snapshots, with its keeper: they outlive the ranks, and the attempts at a run. Where the
// launcher does not know its ranks' run, as `lockstep launch`, they tell its folder, whose lock is theirs while they
// live.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"
#include "lockstep/train/folder/folder_watch.h"
#include "lockstep/train/folder/run_lock.h"

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

  // Holds on to a folder that the ranks have told, so that another one in its place is noticed. To be called often
  // while they run.
  void watch_folder();

  // Whether the ranks may tell a folder yet, and wait to hear that it is seen.
  bool awaits_folder() const { return is_told_ && header().seen.load() == checkpoint::SnapshotHeader::Seen::kNotYet; }

  // Takes the lock of a folder that the ranks have told, once all of them are gone: until the next begin_attempt() no
  // other run begins there. Where another has already, what is written from here on fails.
  void hold_folder();

  // The run's folder that the ranks have told; "": none, or there is another one in its place, or none that this
  // process sees.
  std::string told_run() const;

 private:
  std::string run_in_header() const;
  void open_watch();
  void check_told_folder();

  const bool is_told_;  // the folder, by the ranks
  std::mutex mutex_;    // guards those below, up to the lock
  std::string watched_;
  uint64_t device_ = 0, inode_ = 0;          // of watched_, as the ranks see it
  std::optional<train::FolderWatch> watch_;  // of watched_
  std::string refused_;                      // why the lock could not be taken
  std::optional<train::RunLock> lock_;
  std::atomic<Board*> board_ = nullptr;
  Descriptor memory_;
  std::shared_ptr<checkpoint::Slots> slots_;
  std::optional<checkpoint::Keeper> keeper_;  // last: its thread uses the others
};

}  // namespace lockstep::launch
