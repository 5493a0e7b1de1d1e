#include "lockstep/launch/progress_watch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/rank_text.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

// Ranks give up by themselves first, if they wait for another one, and know more.
constexpr int64_t kAfterRanksNs = 2'000'000'000;
// News of progress may be so old.
constexpr int64_t kBetweenBeatsNs = 1'000'000'000;

// Who looks at it in a debugger may take their time.
bool is_debugged(const BoardRank& rank) { return process_state(rank.pid.load()) == 't'; }

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
  return cat(text, "; ", named_ranks(waiting), ' ', how);
}

// How long no rank has made progress before the first step; 0 once there has been one, whatever the command's next
// program does, and of programs that count none.
int64_t ProgressWatch::still_since_start(const std::vector<RankSample>& samples, const std::vector<bool>& running,
                                         int64_t now_ns) {
  if (began_ns_ == 0) began_ns_ = now_ns;
  int64_t since_ns = std::max(began_ns_, resumed_ns_);
  bool counts_steps = false;
  for (size_t i = 0; i < samples.size(); ++i) {
    has_begun_ = has_begun_ || samples[i].step > 0;
    counts_steps = counts_steps || (running[i] && board_.ranks[i].counts_steps.load() != 0);
    since_ns = std::max(since_ns, samples[i].beat_ns);
  }
  return counts_steps && !has_begun_ ? now_ns - since_ns : 0;
}

// Before the first step nobody knows how long anything takes: data that are looked through, a file system that hangs.
// So it is told, long before it is ended. Empty where there is nothing to tell.
std::string ProgressWatch::slow_start_text(int64_t still_ns, const std::vector<bool>& running) {
  if (still_ns < start_patience_ns_) return "";
  start_patience_ns_ *= 2;
  std::string text = cat("warning: no first step yet, and no progress for ", whole_seconds(still_ns), " s");
  for (size_t i = 0; i < running.size(); ++i) {
    if (!running[i]) continue;
    const bool has_joined = board_.ranks[i].pid.load() != 0;
    text += cat("; ", has_joined ? called(static_cast<int>(i)) : cat("rank ", first_rank_ + static_cast<int>(i)), ' ',
                has_joined ? state_text(board_.ranks[i]) : "has not joined the others");
  }
  return text;
}

// The rank that has hung before the first step: one that others wait for. A lone one, with none on other nodes
// either, may look through its data for as long as it takes.
std::optional<ProgressWatch::Hang> ProgressWatch::hung_start(int64_t still_ns, const std::vector<RankSample>& samples,
                                                             const std::vector<bool>& running, int64_t now_ns) const {
  if (timeout_ns_ == 0 || still_ns < std::max(kStartNs, timeout_ns_) + kAfterRanksNs) return std::nullopt;
  const bool are_all = std::cmp_greater_equal(running.size(), world_size_);
  if (are_all && std::count(running.begin(), running.end(), true) < 2) return std::nullopt;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!running[i] || samples[i].waiting || is_debugged(board_.ranks[i])) continue;
    return hang_of(static_cast<int>(i), now_ns - still_ns, now_ns, "before the first step");
  }
  return std::nullopt;
}

ProgressWatch::Findings ProgressWatch::look(const std::vector<bool>& running, int64_t now_ns) {
  std::vector<RankSample> samples;
  for (size_t rank = 0; rank < running.size(); ++rank) {
    samples.push_back(sample_of(board_.ranks[rank], running[rank]));
  }
  Findings found;
  const int64_t still_ns = still_since_start(samples, running, now_ns);
  if (const std::string text = slow_start_text(still_ns, running); !text.empty()) found.lines.push_back(text);
  found.hang = hung_start(still_ns, samples, running, now_ns);
  const int64_t timeout_ns = timeout_ns_ == 0 ? 0 : timeout_ns_ + kAfterRanksNs;
  const auto first_step_ns = static_cast<int64_t>(board_.first_step_ns.load());
  if (const auto stall = stalls_.look(samples, now_ns, first_step_ns, timeout_ns)) {
    if (stall->is_new) {
      found.lines.push_back("warning: " + stall_text(*stall, running, now_ns));
      found.stacks = stall->suspects;
    }
    const int rank = stall->suspects.front();
    if (stall->is_hang && !is_debugged(board_.ranks[static_cast<size_t>(rank)])) {
      found.hang = hang_of(rank, stall->since_ns, now_ns, "--timeout");
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

// Since 0: nobody knows since when.
ProgressWatch::Hang ProgressWatch::hang_of(int rank, int64_t since_ns, int64_t now_ns, const char* by) const {
  const std::string how_long = since_ns > 0 ? cat(" for ", whole_seconds(now_ns - since_ns), " s") : "";
  return {rank,
          cat("hung: no progress", how_long, " (", by, "); it ", state_text(board_.ranks[static_cast<size_t>(rank)]))};
}

std::vector<bool> ProgressWatch::ended(const std::vector<bool>& running) const {
  std::vector<bool> ended;
  for (size_t i = 0; i < running.size(); ++i) {
    const RankState state = board_.ranks[i].state.load();
    const int pid = board_.ranks[i].pid.load();  // 0: it has not started
    ended.push_back(!running[i] || state == RankState::kFailed || state == RankState::kFinished ||
                    (pid != 0 && process_ended(pid)));
  }
  return ended;
}

// Ranks that wait have the progress of those that they wait for: who holds them up has no later one. It is that of the
// missed ranks or, where these have all given up, too, as they heard of it, that of those who missed them. INT64_MIN if
// nobody waits.
int64_t ProgressWatch::progress_of_waiting(uint64_t missed, const std::vector<bool>& ended) const {
  int64_t of_missed = INT64_MIN, of_others = INT64_MIN;
  bool all_gave_up = true;
  for (size_t i = 0; i < ended.size(); ++i) {
    const BoardRank& rank = board_.ranks[i];
    const bool is_missed = (missed >> i & 1) != 0;
    if (is_missed && !ended[i]) of_missed = std::max(of_missed, rank.beat_ns.load());
    if (ended[i] && rank.missed.load() != 0) of_others = std::max(of_others, rank.beat_ns.load());
    const bool failed_for_others =
        rank.state.load() == RankState::kFailed && rank.exit_code.load() == CommError::kExitCode;
    all_gave_up = all_gave_up && (!is_missed || failed_for_others);
  }
  return all_gave_up ? of_others : of_missed;
}

std::optional<ProgressWatch::Hang> ProgressWatch::waited_for(const std::vector<bool>& running, int64_t now_ns) const {
  const std::vector<bool> ended = this->ended(running);
  uint64_t missed = 0;  // by those that gave up: a rank that goes on has met the others since
  for (size_t i = 0; i < ended.size(); ++i) missed |= ended[i] ? board_.ranks[i].missed.load() : 0;
  const int64_t progress_ns = progress_of_waiting(missed, ended);
  // One that is missed comes before one that the missed may wait for; of either, who stands still for longest.
  std::optional<Hang> found;
  std::pair<bool, int64_t> first{true, INT64_MAX};  // whether it is not missed, and since when it stands still
  for (size_t i = 0; i < running.size(); ++i) {
    const BoardRank& rank = board_.ranks[i];
    if (ended[i] || is_debugged(rank)) continue;
    const RankSample sample = sample_of(rank, running[i]);
    const bool is_stopped = process_stopped(rank.pid.load());
    if (!is_stopped && (sample.waiting || rank.saving.load() != 0 || rank.missed.load() != 0)) continue;
    const bool is_missed = (missed >> i & 1) != 0;
    if (!is_missed && !sample.running) continue;  // it has not begun, or is another program
    if (!is_missed && (progress_ns == INT64_MIN || sample.beat_ns > progress_ns + kBetweenBeatsNs)) continue;
    const std::pair own{!is_missed, sample.beat_ns};
    if (own >= first) continue;
    first = own;
    const char* const by = is_missed ? "others have given up waiting for it" : "others wait for ranks that wait for it";
    found = hang_of(static_cast<int>(i), sample.beat_ns, now_ns, by);
  }
  return found;
}

std::optional<ProgressWatch::Hang> ProgressWatch::given_up_elsewhere(const std::vector<bool>& running,
                                                                     int64_t now_ns) const {
  if (timeout_ns_ == 0) return std::nullopt;
  const std::vector<bool> ended = this->ended(running);
  std::optional<Hang> found;
  int64_t first_ns = INT64_MAX;
  for (size_t i = 0; i < running.size(); ++i) {
    const BoardRank& rank = board_.ranks[i];
    if (ended[i] || is_debugged(rank) || rank.saving.load() != 0) continue;
    const RankSample sample = sample_of(rank, running[i]);
    if (!sample.running || sample.waiting || sample.step == 0 || sample.beat_ns == 0) continue;
    // Who is not stopped may be within a long step.
    const int64_t step_ns = process_stopped(rank.pid.load()) ? 0 : stalls_.long_steps_ns();
    const int64_t still_ns = now_ns - std::max(sample.beat_ns, resumed_ns_);
    if (still_ns <= std::max(timeout_ns_ - kBetweenBeatsNs, step_ns) || sample.beat_ns >= first_ns) continue;
    first_ns = sample.beat_ns;
    found = hang_of(static_cast<int>(i), first_ns, now_ns, "ranks of other nodes have given up waiting for it");
  }
  return found;
}

void ProgressWatch::resumed(int64_t now_ns) {
  resumed_ns_ = now_ns;
  stalls_.resumed(now_ns);
  stragglers_.resumed();
}

}  // namespace lockstep::launch
