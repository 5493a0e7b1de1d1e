#include "lockstep/launch/kept_slots.h"

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
  slots_->header().kept.store(1);
}

void KeptSlots::begin_attempt(Board* board, int ranks) {
  if (board != nullptr) slots_->begin_anew(ranks);
  board_.store(board);
  const std::lock_guard guard(mutex_);
  lock_.reset();
  refused_.clear();
}

void KeptSlots::watch_folder() {
  if (!is_told_ || header().keep_last.load() == 0) return;
  const std::lock_guard guard(mutex_);
  try {
    open_watch();
  } catch (const IoError&) {  // the keeper will say so
  }
}

void KeptSlots::open_watch() {
  const std::string run = told_run();
  if (watch_ && run == watched_) return;
  watch_.emplace(run);
  watched_ = run;
}

void KeptSlots::hold_folder() {
  const std::lock_guard guard(mutex_);
  const std::string run = told_run();
  if (!is_told_ || run.empty()) return;
  try {
    lock_ = train::RunLock::take(run, run);
  } catch (const Error& error) {
    refused_ = error.what();
  }
}

// The folder of the run, in which checkpoints/ is.
std::string KeptSlots::told_run() const { return std::filesystem::path(header().folder.get()).parent_path(); }

// On the keeper's thread, before it writes.
void KeptSlots::check_told_folder() {
  const std::lock_guard guard(mutex_);
  if (!refused_.empty()) throw IoError(refused_);
  open_watch();
  watch_->check();
}

}  // namespace lockstep::launch
