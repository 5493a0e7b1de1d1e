#include "lockstep/launch/progress_watch.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/process_state.h"
#include "lockstep/base/rank_text.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

// Ranks give up by themselves first, if they wait for another one, and know more.
constexpr int64_t kAfterRanksNs = 2'000'000'000;

double whole_seconds(int64_t ns) { return std::round(static_cast<double>(ns) * 1e-9); }
double tenth_ms(double seconds) { return std::round(seconds * 1e4) / 10; }
double percent(double share) { return std::round(100 * std::clamp(share, 0.0, 1.0)); }

}  // namespace

std::string ProgressWatch::called(int rank) const {
  return cat("rank ", first_rank_ + rank, " (pid ", board_.ranks[static_cast<size_t>(rank)].pid.load(), ")");
}

std::string ProgressWatch::stall_text(const StallWatch::Stall& stall, const std::vector<bool>& running,
                                      int64_t now_ns) const {
  std::string text = cat("no progress for ", whole_seconds(now_ns - stall.since_ns), " s");
  std::vector<int> waiting;
  for (int rank = 0; rank < static_cast<int>(running.size()); ++rank) {
    const bool suspect = std::find(stall.suspects.begin(), stall.suspects.end(), rank) != stall.suspects.end();
    if (suspect) text += cat("; ", called(rank), ' ', state_text(board_.ranks[static_cast<size_t>(rank)]));
    if (!suspect && running[static_cast<size_t>(rank)]) waiting.push_back(first_rank_ + rank);
  }
  if (waiting.empty()) return text;
  const std::string at = board_.ranks[static_cast<size_t>(waiting[0] - first_rank_)].doing.get();
  const bool one = waiting.size() == 1;
  const std::string how = at.starts_with("waiting") ? cat(one ? "is " : "are ", at) : one ? "waits" : "wait";
  return cat(text, "; ", one ? "rank " : "ranks ", ranges(waiting), ' ', how);
}

ProgressWatch::Findings ProgressWatch::look(const std::vector<bool>& running, int64_t now_ns) {
  std::vector<RankSample> samples;
  for (size_t rank = 0; rank < running.size(); ++rank) {
    samples.push_back(sample_of(board_.ranks[rank], running[rank]));
  }
  Findings found;
  const int64_t timeout_ns = timeout_ns_ == 0 ? 0 : timeout_ns_ + kAfterRanksNs;
  const auto first_step_ns = static_cast<int64_t>(board_.first_step_ns.load());
  if (const auto stall = stalls_.look(samples, now_ns, first_step_ns, timeout_ns)) {
    if (stall->is_new) {
      found.lines.push_back("warning: " + stall_text(*stall, running, now_ns));
      found.stacks = stall->suspects;
    }
    const int rank = stall->suspects.front();
    const int64_t age_ns = now_ns - stall->since_ns;
    // Who looks at it in a debugger may take their time.
    if (stall->is_hang && process_state(board_.ranks[static_cast<size_t>(rank)].pid.load()) != 't') {
      found.hang = Hang{rank, cat("hung: no progress for ", whole_seconds(age_ns), " s (--timeout); it ",
                                  state_text(board_.ranks[static_cast<size_t>(rank)]))};
    }
  }
  if (const auto slow = stragglers_.look(samples, now_ns)) {
    found.lines.push_back(cat("warning: ", called(slow->rank), " holds up the others: its part of a step takes ",
                              tenth_ms(slow->step_s), " ms, theirs ", tenth_ms(slow->others_s), " ms; of its time ",
                              percent(slow->data_share), " % is waiting for data, ", percent(slow->wait_share),
                              " % for other ranks, the rest computing"));
  }
  return found;
}

void ProgressWatch::resumed(int64_t now_ns) {
  stalls_.resumed(now_ns);
  stragglers_.resumed();
}

}  // namespace lockstep::launch
