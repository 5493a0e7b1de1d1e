#include "lockstep/launch/kept_slots.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::launch {

KeptSlots::KeptSlots(int ranks, checkpoint::Keeper::Options options)
    : is_told_(options.folder.empty()),
      memory_(checkpoint::Slots::create(ranks)),
      slots_(std::make_shared<checkpoint::Slots>(memory_.get())) {
  options.on_saved = [this](const std::string& path) {
    if (Board* const board = board_.load()) board->saved.set(cat("checkpoint ", path));
  };
  if (is_told_) options.check_folder = [this] { check_told_folder(); };
  keeper_.emplace(slots_, std::move(options));
  if (!is_told_) slots_->header().seen.store(checkpoint::SnapshotHeader::Seen::kYes);
  slots_->header().kept.store(1);
}

void KeptSlots::begin_attempt(Board* board, int ranks) {
  if (board != nullptr) slots_->begin_anew(ranks);
  board_.store(board);
  const std::lock_guard guard(mutex_);
  lock_.reset();
  refused_.clear();
  if (!is_told_) return;
  header().keep_last.store(0);  // the next ranks tell theirs
  header().seen.store(checkpoint::SnapshotHeader::Seen::kNotYet);
  watch_.reset();
}

// The thread that watches the ranks never waits for the keeper's, which may be in a call to a disk that hangs.
void KeptSlots::watch_folder() {
  if (!is_told_ || header().keep_last.load() == 0) return;
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard.owns_lock()) return;
  try {
    open_watch();
  } catch (const IoError&) {  // the ranks see it in the header
  }
}

// Holds on to the very folder that the ranks have told, or says in the header that this process does not see it.
void KeptSlots::open_watch() {
  using Seen = checkpoint::SnapshotHeader::Seen;
  const std::string run = run_in_header();
  const uint64_t device = header().device.load(), inode = header().inode.load();
  if (watch_ && run == watched_ && inode == inode_ && device == device_) return;
  watched_ = run;
  inode_ = inode;
  device_ = device;
  struct stat there {};
  const bool same = stat(run.c_str(), &there) == 0 && there.st_dev == device && there.st_ino == inode;
  header().seen.store(same ? Seen::kYes : Seen::kNo);
  watch_.reset();
  if (!same) throw IoError(run, ": the ranks see another folder there than their launcher");
  watch_.emplace(run);
}

void KeptSlots::hold_folder() {
  const std::lock_guard guard(mutex_);
  if (!is_told_ || header().keep_last.load() == 0) return;
  const std::string run = run_in_header();
  try {
    lock_ = train::RunLock::take(run, run, {.patience = std::chrono::seconds(1)});  // the ranks are gone
  } catch (const Error& error) {
    refused_ = error.what();
  }
}

std::string KeptSlots::told_run() const {
  const std::string run = run_in_header();
  struct stat there {};
  const bool is_same = is_told_ && !run.empty() && stat(run.c_str(), &there) == 0 &&
                       there.st_dev == header().device.load() && there.st_ino == header().inode.load();
  return is_same ? run : "";
}

// The folder of the run, in which checkpoints/ is.
std::string KeptSlots::run_in_header() const { return std::filesystem::path(header().folder.get()).parent_path(); }

// On the keeper's thread, before it writes.
void KeptSlots::check_told_folder() {
  const std::lock_guard guard(mutex_);
  if (!refused_.empty()) throw IoError(refused_);
  open_watch();
  watch_->check();
}

}  // namespace lockstep::launch
