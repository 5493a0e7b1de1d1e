// The rounds of a watch's thread.
#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/comm/network/watch_state.h"

namespace lockstep::comm {

void Watch::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->ending) {
    if (!state->store_failed) state->try_round(lock);
    state->options.check();
    state->news.notify_all();
    state->news.wait_for(lock, state->options.period, [&] {
      const bool has_news =
          (!state->own_reason.empty() && !state->told) || !state->new_groups.empty() || (state->knows && !state->noted);
      return state->ending || (has_news && !state->store_failed);
    });
  }
  if (!state->store_failed) state->say_farewell(lock);
  state->finished = true;
  state->news.notify_all();
}

// Ranks that still wait for this one are to learn that it has ended by itself. Rank 0 stays until all know of a
// difference.
void Watch::State::say_farewell(std::unique_lock<std::mutex>& lock) {
  const bool by_itself = !verdict && own_reason.empty();
  try {
    if (knows && !noted) note_difference(lock);
    lock.unlock();
    if (by_itself) bulletin->heartbeat(peers.last_heartbeat());
  } catch (const std::exception&) {  // the store has ended with rank 0
  }
  if (!lock.owns_lock()) lock.lock();
}

void Watch::State::try_round(std::unique_lock<std::mutex>& lock) {
  try {
    run_round(lock);
    answered_ns = monotonic_ns();
    ++rounds;
  } catch (const std::exception&) {  // the store is gone: the messages' own connections will tell why
    if (!lock.owns_lock()) lock.lock();
    store_failed = true;
    if (!waits.empty()) options.warn("the rendezvous store, which rank 0 serves, is gone");
  }
}

std::map<uint64_t, Watch::State::Wait> Watch::State::long_waits() const {
  std::map<uint64_t, Wait> found;
  for (const auto& [id, wait] : waits) {
    const bool lasts = monotonic_ns() - wait.began_ns > 2 * std::chrono::nanoseconds(options.period).count();
    if (wait.seconds > 0 || lasts) found.emplace(id, wait);
  }
  return found;
}

// This rank's blocking wait once it lasts long. With several threads in waits one may release another: nothing then.
std::optional<BlockedCall> Watch::State::own_blocked() const {
  if (blocked.size() != 1) return std::nullopt;
  const auto& [id, wait] = *blocked.begin();
  if (monotonic_ns() - wait.began_ns < 2 * std::chrono::nanoseconds(options.period).count()) return std::nullopt;
  return blocked_call(id, wait.call, begun, options.ranks.size());
}

void Watch::State::run_round(std::unique_lock<std::mutex>& lock) {
  const auto groups = std::exchange(new_groups, {});
  const auto lasting = long_waits();
  const auto told_histories = lasting.empty() ? std::map<std::string, History>{} : histories;
  const std::string reason = told ? "" : own_reason;
  const auto own = own_blocked();
  // Under the lock, for the board may go with the watch, which the thread outlives where the store does not answer.
  const std::string heartbeat = peers.own_heartbeat(own);
  lock.unlock();
  for (const auto& group : groups) bulletin->announce(group);
  if (!reason.empty()) bulletin->give_up({cat(peers.called(options.rank), " gave up: ", reason)});
  bulletin->heartbeat(heartbeat);
  const std::string circle = own ? peers.look_for_circle(*bulletin, *own) : "";
  if (!circle.empty()) bulletin->give_up({circle, /*desync=*/true});
  const auto given_up = lasting.empty() ? std::nullopt : bulletin->given_up();
  std::map<uint64_t, std::vector<History>> posts;
  for (const auto& [id, wait] : lasting) {
    if (wait.missing) peers.read_heartbeats(*bulletin, *wait.missing);
    if (wait.call.is_message()) continue;
    bulletin->post(wait.call.group.name, told_histories.at(wait.call.group.name));
    posts[id] = bulletin->posts(wait.call.group);
  }
  lock.lock();
  groups_told += groups.size();
  if (!reason.empty()) told = true;
  if (given_up && given_up->desync) {
    differs = knows = true;
    end_all(std::make_exception_ptr(DesyncError(given_up->reason)));
  } else if (given_up) {
    end_all(std::make_exception_ptr(CommError(given_up->reason)));
  }
  if (!ending) {  // the board may be gone
    for (const auto& [id, all] : posts) judge(id, all);
    follow_progress();
  }
  if (knows) note_difference(lock);
}

// A rank that has learned it on one group may be missed on another, so it posts its calls on all of them.
void Watch::State::note_difference(std::unique_lock<std::mutex>& lock) {
  const bool is_new = !std::exchange(noted, true);
  const auto told_histories = is_new ? histories : std::map<std::string, History>{};
  lock.unlock();
  for (const auto& [group, history] : told_histories) bulletin->post(group, history);
  if (is_new) bulletin->learn_of_difference();
  const bool all = options.rank == 0 && bulletin->learners() >= static_cast<int64_t>(options.ranks.size());
  lock.lock();
  all_know = all;
}

// Waits for ranks that make progress go on. If this rank's thread waits, their progress is this rank's, too.
void Watch::State::follow_progress() {
  std::optional<int64_t> slowest;
  for (auto& [id, wait] : waits) {
    if (!wait.missing || wait.missing->empty()) continue;
    const int64_t progress = peers.progress_of(*wait.missing);
    wait.from_ns = std::max(wait.from_ns, progress);
    slowest = std::min(slowest.value_or(progress), progress);
  }
  if (slowest && !blocked.empty()) peers.pass_on(*slowest);
}

std::chrono::nanoseconds Watch::State::left(const Wait& wait) const {
  return wait.call.timeout - std::chrono::nanoseconds(peers.running_ns() - wait.from_ns);
}

void Watch::State::judge(uint64_t id, const std::vector<History>& posts) {
  const auto at = waits.find(id);
  if (at == waits.end()) return;
  Wait& wait = at->second;
  const bool missed = wait.missing && !wait.missing->empty();
  const Comparison found = compare(wait.call, options.rank, posts);
  wait.missing = found.missing;
  if (missed && found.missing.empty()) wait.from_ns = peers.running_ns();  // the last one has come
  if (!found.differs) return;
  differs = true;
  // The others get a moment more to post what they called.
  if (wait.differs_since_ns == 0) wait.differs_since_ns = monotonic_ns();
  const bool patient = monotonic_ns() - wait.differs_since_ns < 5 * std::chrono::nanoseconds(options.period).count();
  if (!found.missing.empty() && patient) return;
  knows = true;
  end_all(std::make_exception_ptr(DesyncError(difference_text(found.called, wait.call.number - 1))));
}

void Watch::State::end_all(std::exception_ptr why) {
  if (!verdict) verdict = std::move(why);
  options.stop_waits();
  news.notify_all();
}

}  // namespace lockstep::comm
