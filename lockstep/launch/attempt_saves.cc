// What an attempt's ranks have left in memory is brought to the disk.
#include <string>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/launch/attempt.h"

namespace lockstep::launch {

// The files that the ranks have left in memory. A disk that takes nothing for a minute is waited for no longer.
void Attempt::await_saves(SignalWatch& signals) {
  if (slots_ == nullptr) return;
  checkpoint::Keeper& keeper = slots_->keeper();
  constexpr int kNapMs = 20;
  constexpr double kTold = 1;  // seconds
  const double patience = static_cast<double>(spec_.save_patience_ns) * 1e-9;
  uint64_t last = 0;
  bool told = false;
  Stopwatch since_end, since_progress;
  while (!keeper.at_rest() && !stop_.at_once && since_progress.seconds() < patience) {
    if (since_end.seconds() > kTold && !std::exchange(told, true)) {
      terminal_.say(cat("waiting for a checkpoint to be on the disk, for at most ", patience, " s without progress"));
    }
    const uint64_t progress = slots_->header().progress.load();
    if (progress != std::exchange(last, progress)) since_progress.restart();
    ask_others();
    if (!group_->wait(signals.descriptor(), kNapMs, [](RankProcess&) {})) continue;
    on_signals(signals);
    since_progress.restart();  // a pause (Ctrl-Z) stops the keeper, too
  }
}

// The newest snapshot of ranks that have failed, or were killed when their grace was over. Where further attempts are
// allowed, a disk that is full is tried again, for its owner may make room: the next attempt forgets what is in memory.
void Attempt::save_snapshot(SignalWatch& signals) {
  if (!ended_badly() || slots_ == nullptr || must_not_write_) return;
  const double patience = spec_.max_restarts > 0 ? static_cast<double>(spec_.save_patience_ns) * 1e-9 : 0;
  const Stopwatch since_first;
  for (bool told = false; !stop_.at_once && slots_->keeper().at_rest();) {
    const std::string why = try_to_save_snapshot(signals);
    if (why.empty()) return;
    const bool may_get_room = slots_->keeper().at_rest() && slots_->header().disk_full.load() != 0;
    if (!may_get_room || since_first.seconds() >= patience || stop_.request.asked()) {
      return terminal_.say(cat("warning: the newest snapshot was not saved: ", why));
    }
    if (!std::exchange(told, true)) {
      terminal_.say(
          cat("warning: the newest snapshot is not saved yet: ", why, "; trying again for at most ", patience, " s"));
    }
    ask_others();
    constexpr int kNapMs = 1000;
    if (group_->wait(signals.descriptor(), kNapMs, [](RankProcess&) {})) on_signals(signals);
  }
}

// Returns why it is not on the disk; empty if it is, or there is none. The keeper's thread writes it, so that signals
// are heard and a disk that hangs is not waited for without end.
std::string Attempt::try_to_save_snapshot(SignalWatch& signals) {
  const uint32_t failed = slots_->header().failed_in_row.load();
  const auto asked = slots_->keeper().ask_newest();
  if (!asked) return "";
  if (asked->was_there) {
    newest_saved_ = cat("the newest checkpoint is that of step ", asked->step, ", ", asked->path);
    return "";
  }
  await_saves(signals);
  if (!slots_->keeper().at_rest()) return "the disk takes nothing";
  if (slots_->header().failed_in_row.load() > failed) {
    slots_->header().failed_in_row.store(failed);  // the ranks count theirs
    return slots_->header().error.get();
  }
  snapshot_step_ = asked->step;
  snapshot_ = cat("snapshot of step ", asked->step, ", ", asked->path);
  board_->saved.set(snapshot_);
  return "";
}

}  // namespace lockstep::launch
