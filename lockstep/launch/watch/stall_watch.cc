#include "lockstep/launch/watch/stall_watch.h"

#include <algorithm>

namespace lockstep::launch {

int64_t StallWatch::long_steps_ns() const {
  if (step_ns_.empty()) return kFirstNs;
  std::vector<int64_t> sorted = step_ns_;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) * 99 / 100);
  std::nth_element(sorted.begin(), at, sorted.end());
  return kSteps * *at;
}

int64_t StallWatch::patience_ns() const { return std::max(kLeastNs, long_steps_ns()); }

// Several steps between two looks share the time.
void StallWatch::note_steps(uint64_t step, int64_t at_ns, int64_t first_step_ns) {
  if (last_step_ == 0 && first_step_ns > 0) last_step_ = 2, last_step_ns_ = first_step_ns;
  if (step <= last_step_) return;
  if (last_step_ > 0) {
    const int64_t each = (at_ns - last_step_ns_) / static_cast<int64_t>(step - last_step_);
    if (step_ns_.size() < kRemembered) {
      step_ns_.push_back(each);
    } else {
      step_ns_[next_++ % kRemembered] = each;
    }
  }
  last_step_ = step;
  last_step_ns_ = at_ns;
}

std::optional<StallWatch::Stall> StallWatch::look(std::span<const RankSample> ranks, int64_t now_ns,
                                                  int64_t first_step_ns, int64_t timeout_ns) {
  seen_.resize(ranks.size());
  uint64_t furthest = 0;
  int64_t reached_ns = floor_ns_;  // by any of them
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankSample& rank = ranks[i];
    Seen& seen = seen_[i];
    const bool is_new = seen.progress_ns == 0 && rank.beat_ns > 0;  // since when it is as it is, its beat says
    const bool moved = !is_new && (rank.step != seen.step || rank.sequence != seen.sequence);
    seen = {rank.step, rank.sequence, std::max({moved ? now_ns : seen.progress_ns, rank.beat_ns, floor_ns_})};
    reached_ns = std::max(reached_ns, std::min(now_ns, rank.beat_ns > 0 ? rank.beat_ns : seen.progress_ns));
    furthest = std::max(furthest, rank.step);
  }
  note_steps(furthest, reached_ns, first_step_ns);

  const int64_t patience = patience_ns();
  Stall stall{.since_ns = now_ns};
  uint64_t behind = UINT64_MAX;  // the fewest collectives that a running rank has begun
  bool late = false;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].running) continue;
    if (ranks[i].step == 0) return std::nullopt;
    behind = std::min(behind, ranks[i].sequence);
    late = late || now_ns - seen_[i].progress_ns > patience;
  }
  if (!late) {
    stalled_ = false;
    return std::nullopt;
  }
  const auto suspect = [&](size_t i) {
    return ranks[i].running && ranks[i].sequence == behind && now_ns - seen_[i].progress_ns > patience;
  };
  bool any_busy = false;  // not all transports count their collectives: then all are behind, and most of them wait
  for (size_t i = 0; i < ranks.size(); ++i) any_busy = any_busy || (suspect(i) && !ranks[i].waiting);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!suspect(i) || (any_busy && ranks[i].waiting)) continue;
    stall.suspects.push_back(static_cast<int>(i));
    stall.since_ns = std::min(stall.since_ns, seen_[i].progress_ns);
  }
  if (stall.suspects.empty()) return std::nullopt;  // who is behind moves, and the others wait for it
  stall.is_new = !stalled_;
  // Ranks that wait give up by themselves. Before a step's time is known it may be of any length.
  const bool judged = timeout_ns > 0 && any_busy && !stall.is_new && !step_ns_.empty();
  stall.is_hang = judged && now_ns - stall.since_ns > std::max(timeout_ns, patience);
  stalled_ = true;
  return stall;
}

}  // namespace lockstep::launch
