// An attempt's ranks are asked to stop, and those that a failed one leaves behind are ended.
#include <csignal>
#include <string>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/launch/attempt.h"

namespace lockstep::launch {

void Attempt::on_stop_signal(int signal) {
  // To other programs it may mean anything.
  const bool is_users = signal == SIGUSR1 || signal == SIGUSR2;
  if (is_users && spec_.stop_by == StopBy::kSignal) return group_->signal_running(signal);
  const auto meaning = stop_.request.take(signal);
  if (meaning == StopRequest::Meaning::kTheSame) return;
  stop_.signal = signal;
  if (stop_.first_ns == 0) stop_.first_ns = monotonic_ns();
  if (meaning == StopRequest::Meaning::kOnceMore) {
    stop_.at_once = true;
    stop_.failed_before = failure_.begun();
    signal_all(SIGKILL);
  } else if (spec_.stop_by == StopBy::kSignal) {
    signal_all(signal);
  } else {
    board_->stop_requested.store(1);
    if (!failure_.begun()) terminal_.say("stopping after this step, with a checkpoint; once more stops at once");
  }
  group_->signal_running(SIGCONT);  // a rank that somebody has stopped is to hear of it, too
}

// A rank that ends by this after another one's failure is not the cause.
void Attempt::signal_all(int signal) {
  if (!failure_.begun()) return group_->signal_running(signal);
  for (size_t rank = 0; rank < group_->ranks().size(); ++rank) group_->stop(rank, signal);
}

// Ranks that got a signal may end by it as they like. One that ends otherwise has failed: the others may wait for it.
void Attempt::note_failure_in_stop(const RankProcess& process) {
  const ExitStatus& status = *process.status;
  if (status.exit_code() == 128 + stop_.signal || stop_.at_once || stop_.out_of_grace) return;
  died_in_stop_ = died_in_stop_ || status.signal != 0;
  if (failed_in_stop_ns_ != 0) return;
  failed_in_stop_ns_ = monotonic_ns();
  note_first_failure(process);
}

void Attempt::end_others_in_stop() {
  if (failed_in_stop_ns_ == 0 || spec_.grace_ns != 0 || failure_.begun()) return;
  if (monotonic_ns() - failed_in_stop_ns_ < spec_.grace_of_others_ns) return;
  failure_.begin(monotonic_ns());
  note_halted();
}

void Attempt::end_grace() {
  if (spec_.grace_ns == 0 || stop_.first_ns == 0 || monotonic_ns() - stop_.first_ns < spec_.grace_ns) return;
  if (std::exchange(stop_.out_of_grace, true)) return;
  stop_.failed_before = failure_.begun();
  signal_all(SIGKILL);
}

void Attempt::stop_others() {
  failure_.act(
      *board_, monotonic_ns(), [&](size_t rank, int signal) { group_->stop(rank, signal); },
      [this](size_t rank) { tell_of_save(rank); });
}

void Attempt::tell_of_save(size_t rank) {
  if (std::exchange(told_of_save_, true)) return;
  const std::string doing = board_->ranks[rank].doing.get();
  terminal_.say(cat(first_failure_, "; waiting for rank ", rank_in_world(static_cast<int>(rank)), " (",
                    doing.empty() ? "saving a checkpoint" : doing, "), for at most ",
                    spec_.save_patience_ns / 1'000'000'000, " s without progress"));
}

}  // namespace lockstep::launch
