// Saves a run's checkpoints, while it trains on where that is possible, and its snapshots.
//
// Under our launcher the ranks of a node that saves copy their shares of the file into a slot of the launcher's memory
// (checkpoint/slots), which writes it to the disk; nothing is gathered. Elsewhere, for a model on a GPU, and where
// ranks of several nodes share an optimizer's state, a rank that saves (rank 0, or each node's first) copies the
// gathered state, and a thread of its own writes it. All nodes write the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/pt_image.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"
#include "lockstep/train/best_saves.h"
#include "lockstep/train/page_populator.h"
#include "lockstep/train/parts.h"
#include "lockstep/train/reporter.h"

namespace lockstep::train {

// What fails is the disk's: a warning, and training goes on. The third failure in a row is an IoError, and so is that
// of a save that is waited for. All ranks call the same functions at the same steps; their state is ready to be saved,
// with rank 0's buffers everywhere. One thread.
class Saver {
 public:
  static constexpr uint32_t kMostFailures = 3;

  // All outlive this.
  Saver(const Parts& parts, Reporter& reporter, const Logger& log);
  ~Saver();

  // After each step: sees once whether there is memory for two images, and begins to back it with pages; and again
  // after the first update, with which the optimizer has its state.
  void prepare();
  void updated() { has_updated_ = true; }
  // Saves a checkpoint of this step, as the best so far or not. A collective.
  void save(bool best);
  // The same, and returns when it is on the disk, with all those before it.
  void save_and_wait(bool best);
  // Keeps an image of this step in memory, for a run whose ranks die. A collective.
  void snapshot();
  bool snapshot_due() const;
  // Writes the state to a file that is none of the store's, when all else is on the disk. Before, the launcher gets a
  // snapshot, for the case that it can't wait for the file. A collective.
  void save_interrupted(const std::string& file);
  // Whether this step is saved and on the disk, which is waited for. A collective.
  bool has_saved();
  // Whether the run went on from the checkpoint of this step, in its own folder, where it still is: its bytes are the
  // undisturbed run's. A collective.
  bool began_with_file();
  // What became of the saves of a best. A collective.
  BestSaves best_saves();
  // Looks at what became of earlier saves. Throws IoError after the third failure in a row.
  void look();
  // The run has failed on this rank: where a thread of this rank keeps the slots, it finishes its files, and the newest
  // snapshot is saved.
  void rescue() noexcept;

 private:
  enum class Mode { kWaited, kOwnThread, kTogether };

  Mode choose_mode();
  Mode choose_mode_of_nodes();
  bool may_fill_slots() const;
  void take_slots();
  bool launcher_sees_folder();
  int64_t snapshot_every() const;
  bool leads() const { return parts_.world->rank() == 0; }
  bool saves() const { return parts_.saves(); }
  bool fills() const { return saver_ >= 0; }
  checkpoint::Value whole_state() const;
  checkpoint::Value own_state(std::vector<checkpoint::OwnSlice>& slices) const;
  void put(checkpoint::Purpose purpose);
  void put_together(checkpoint::Purpose purpose);
  void put_alone(checkpoint::Purpose purpose);
  void write(const checkpoint::Value& state, bool best, bool must);
  std::optional<int> slot_for(checkpoint::Purpose purpose);
  bool any_pinned() const;
  bool has_new_failure();
  void wait_for_disk(const std::function<bool()>& condition);
  void failed(const std::string& why, uint32_t in_row);

  const Parts& parts_;
  Reporter& reporter_;
  const Logger& log_;
  checkpoint::CheckpointStore store_;
  int saver_ = -1;  // with kTogether: the rank of this node that saves; -1: none does
  Mode mode_;
  std::shared_ptr<checkpoint::Slots> slots_;  // null with kWaited, and where this rank has no part in an image
  std::optional<checkpoint::Keeper> keeper_;  // with kOwnThread on ranks that save
  const int64_t first_step_;                  // that the run began or went on with
  bool has_updated_;                          // the optimizer has its state
  std::optional<bool> prepared_;              // prepare() has looked: whether with the optimizer's state
  std::optional<PagePopulator> populator_;
  uint32_t failed_ = 0;         // of the keeper's saves that failed, those that look() has seen
  uint32_t waited_failed_ = 0;  // saves in a row that were waited for and failed
  BestSaves waited_best_;       // of those that were waited for
  int64_t put_step_ = -1;       // of the last image in the launcher's slots
  int64_t asked_step_ = -1;     // of the last save()
  int64_t waited_step_ = -1;    // of the last save_and_wait()
  std::optional<bool> fits_;    // whether there is memory for two images
};

}  // namespace lockstep::train
