// Checkpoints of a loop of one's own that the loop does not wait for.
//
//   checkpoint::CheckpointStore store("runs/mine/checkpoints");
//   state.load(store);
//   loop::BackgroundSaves saves(*world, store);
//   while (step < steps) {
//     …
//     if (++step % 100 == 0) state.save(saves);
//   }
//   saves.wait();
//
// A save copies the state into memory of rank 0, in the form of the file, and a thread of rank 0 adds the checksums and
// writes it. There are two such places, so a save waits only where the disk has not taken the one before the last. They
// take twice a checkpoint's bytes; where these are not left, saves are waited for, and a warning says so.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/world/world.h"

namespace lockstep::loop {

// What fails is the disk's: a warning of rank 0, and the loop goes on. The third failure in a row is an IoError on all
// ranks. One thread.
class BackgroundSaves {
 public:
  static constexpr uint32_t kMostFailures = 3;

  // Both outlive this. Nothing else saves to the store, or cuts it back, as long as this lives. A collective. Throws
  // IoError, on all ranks, if rank 0's system has no memory or thread for it.
  BackgroundSaves(World& world, const checkpoint::CheckpointStore& store);
  BackgroundSaves(const BackgroundSaves&) = delete;
  BackgroundSaves& operator=(const BackgroundSaves&) = delete;
  // Waits for what was saved, for a minute without progress of the disk. What fails now is a warning.
  ~BackgroundSaves();

  // Returns when all is on the disk. Throws IoError, on all ranks, if the last save failed. A collective.
  void wait();

  // For loop::State: copies a tree, which is whole on rank 0, as the checkpoint of a step. A collective.
  void put(const checkpoint::Value& whole, int64_t step, bool best);

 private:
  struct Writer;

  World& world_;
  std::unique_ptr<Writer> writer_;  // of rank 0
};

}  // namespace lockstep::loop
