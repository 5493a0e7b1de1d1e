#include "lockstep/comm/network/watch.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/comm/network/peer_states.h"

namespace lockstep::comm {

struct Watch::State {
  struct Wait {
    WatchedCall call;
    int64_t began_ns = monotonic_ns();
    int64_t from_ns = 0;  // PeerStates::running_ns() from which its timeout counts
    double seconds = 0;   // the time until it failed; 0: it has not. A failed wait is compared at once
    bool warned = false;
    int64_t differs_since_ns = 0;
    std::optional<std::vector<int>> missing = {};  // the ranks that had not posted this call in the last round
  };

  State(Options wanted, std::unique_ptr<Bulletin> notes)
      : options(std::move(wanted)), bulletin(std::move(notes)), peers(options.ranks, options.rank, options.board) {}

  Options options;
  std::unique_ptr<Bulletin> bulletin;
  PeerStates peers;

  std::mutex mutex;
  std::condition_variable news;
  bool ending = false;
  uint64_t next_wait = 1;
  std::map<uint64_t, Wait> waits;
  std::map<std::string, History> histories;  // by group
  struct Blocked {
    WatchedCall call;
    int64_t began_ns = monotonic_ns();
  };
  std::map<uint64_t, Blocked> blocked;  // by number
  uint64_t next_blocked = 1;
  BegunCalls begun;
  std::vector<WatchGroup> new_groups;
  uint64_t groups_queued = 0, groups_told = 0;
  std::string own_reason;      // why this rank gives up; empty: it does not
  bool told = false;           // whether the store has own_reason
  bool differs = false;        // whether ranks called different things
  std::exception_ptr verdict;  // the error with which all waits end
  int64_t answered_ns = monotonic_ns();
  bool store_failed = false;
  int64_t warned_ns = 0;
  uint64_t rounds = 0;
  bool finished = false;  // whether the thread has ended

  // One round of the thread: beats, posts, reads, judges. It talks to the store without holding the lock.
  void run_round(std::unique_lock<std::mutex>& lock);
  void say_farewell(std::unique_lock<std::mutex>& lock);
  void try_round(std::unique_lock<std::mutex>& lock);  // notes it when the store is gone
  std::map<uint64_t, Wait> long_waits() const;
  std::optional<BlockedCall> own_blocked() const;
  void judge(uint64_t id, const std::vector<History>& posts);
  void follow_progress();
  std::chrono::nanoseconds left(const Wait& wait) const;
  void end_all(std::exception_ptr why);

  // Whether the store has not answered for long, so that waiting for it is no use.
  bool is_cut_off() const {
    return monotonic_ns() - answered_ns > 4 * std::chrono::nanoseconds(options.period).count();
  }
  std::string text_of(const Wait& wait, const MeshError& error) const;
  std::string about(const std::vector<int>& missing) const;
};

Watch::Watch(Options options, std::unique_ptr<Bulletin> bulletin)
    : state_(std::make_shared<State>(std::move(options), std::move(bulletin))) {
  const SigpipeBlocked blocked;
  std::thread([state = state_] { run(state); }).detach();
}

Watch::~Watch() {
  constexpr std::chrono::seconds kPatience{2};
  std::unique_lock lock(state_->mutex);
  // The store ends with rank 0. After a desync the others still need it, to read what the ranks called.
  if (state_->differs && state_->options.rank == 0) {
    state_->news.wait_for(lock, 3 * state_->options.period, [&] { return state_->store_failed; });
  }
  state_->ending = true;
  state_->options.stop_waits = state_->options.check = [] {};
  state_->news.notify_all();
  state_->news.wait_for(lock, kPatience, [&] { return state_->finished || state_->is_cut_off(); });
}

void Watch::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->ending) {
    if (!state->store_failed) state->try_round(lock);
    state->options.check();
    state->news.notify_all();
    state->news.wait_for(lock, state->options.period, [&] {
      const bool has_news = (!state->own_reason.empty() && !state->told) || !state->new_groups.empty();
      return state->ending || (has_news && !state->store_failed);
    });
  }
  if (!state->verdict && state->own_reason.empty() && !state->store_failed) state->say_farewell(lock);
  state->finished = true;
  state->news.notify_all();
}

// Ranks that still wait for this one are to learn that it has ended by itself.
void Watch::State::say_farewell(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try {
    bulletin->heartbeat(peers.last_heartbeat());
  } catch (const std::exception&) {  // the store has ended with rank 0
  }
  lock.lock();
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
    bulletin->post(wait.call.group, told_histories.at(wait.call.group.name));
    posts[id] = bulletin->posts(wait.call.group);
  }
  lock.lock();
  groups_told += groups.size();
  if (!reason.empty()) told = true;
  if (given_up && given_up->desync) {
    differs = true;
    end_all(std::make_exception_ptr(DesyncError(given_up->reason)));
  } else if (given_up) {
    end_all(std::make_exception_ptr(CommError(given_up->reason)));
  }
  if (ending) return;  // the board may be gone
  for (const auto& [id, all] : posts) judge(id, all);
  follow_progress();
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
  end_all(std::make_exception_ptr(DesyncError(difference_text(found.called, wait.call.number - 1))));
}

void Watch::State::end_all(std::exception_ptr why) {
  if (!verdict) verdict = std::move(why);
  options.stop_waits();
  news.notify_all();
}

void Watch::begin(const WatchedCall& call) {
  const std::lock_guard lock(state_->mutex);
  state_->begun.add(call.own_channel(), call.number);
}

std::shared_ptr<void> Watch::block(const WatchedCall& call) {
  const std::lock_guard lock(state_->mutex);
  const uint64_t id = state_->next_blocked++;
  state_->begun.add(call.own_channel(), call.number);
  state_->blocked.emplace(id, State::Blocked{call});
  return {nullptr, [state = state_.get(), id](void*) {
            const std::lock_guard at_end(state->mutex);
            state->blocked.erase(id);
          }};
}

void Watch::note(const WatchedCall& call) {
  const std::lock_guard lock(state_->mutex);
  if (!call.is_message()) state_->histories[call.group.name].add({call.number, call.signature});
}

uint64_t Watch::enter(const WatchedCall& call) {
  note(call);
  const std::lock_guard lock(state_->mutex);
  const uint64_t id = state_->next_wait++;
  State::Wait wait{.call = call, .from_ns = state_->peers.running_ns()};
  if (!call.expects.empty()) wait.missing = call.expects;
  state_->waits.emplace(id, std::move(wait));
  return id;
}

std::chrono::nanoseconds Watch::left(uint64_t wait) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->waits.find(wait);
  return at == state_->waits.end() ? std::chrono::nanoseconds(0) : state_->left(at->second);
}

std::chrono::nanoseconds Watch::longest_left() const {
  const std::lock_guard lock(state_->mutex);
  using std::chrono::nanoseconds;
  nanoseconds longest = state_->waits.empty() ? nanoseconds(0) : nanoseconds::min();
  for (const auto& [id, wait] : state_->waits) longest = std::max(longest, state_->left(wait));
  return longest;
}

void Watch::leave(uint64_t wait) {
  const std::lock_guard lock(state_->mutex);
  state_->waits.erase(wait);
}

void Watch::announce(const WatchGroup& group) {
  std::unique_lock lock(state_->mutex);
  state_->new_groups.push_back(group);
  const uint64_t own = ++state_->groups_queued;
  state_->news.notify_all();
  state_->news.wait_for(lock, 20 * state_->options.period,
                        [&] { return state_->groups_told >= own || state_->store_failed; });
}

void Watch::warn_if_late(uint64_t id) {
  constexpr double kBetweenWarnings = 5;
  std::string text;
  {
    const std::lock_guard lock(state_->mutex);
    const auto at = state_->waits.find(id);
    if (at == state_->waits.end() || at->second.warned) return;
    State::Wait& wait = at->second;
    if (monotonic_ns() - wait.began_ns < wait.call.timeout.count() / 10) return;
    // Who is missing is known after a few rounds.
    if (!wait.missing && monotonic_ns() - wait.began_ns < wait.call.timeout.count() / 2) return;
    wait.warned = true;
    // A call may be waited for in two groups, that of its parts and that of the whole. One warning is enough.
    if (state_->warned_ns != 0 && seconds_since(state_->warned_ns) < kBetweenWarnings) return;
    state_->warned_ns = monotonic_ns();
    text = cat(wait.call.text(), ": has waited ", seconds_since(wait.began_ns), " s",
               state_->about(wait.missing.value_or(std::vector<int>{})), "; gives up after ",
               std::chrono::duration<double>(wait.call.timeout).count(), " s (", state_->options.timeout_name, ')');
  }
  state_->options.warn(text);
}

std::exception_ptr Watch::explain(uint64_t id, const MeshError& error) {
  std::unique_lock lock(state_->mutex);
  const auto at = state_->waits.find(id);
  if (at == state_->waits.end()) return std::make_exception_ptr(BugError("watch: no wait ", id));
  at->second.seconds = std::max(0.1, seconds_since(at->second.began_ns));
  if (!at->second.missing) at->second.missing = error.peers();
  // The current round may have begun before this wait. A comparison takes two rounds: one posts, a later one reads.
  const uint64_t enough = state_->rounds + (error.cause() == MeshError::Cause::kTimeout ? 3 : 2);
  state_->news.wait_for(lock, 5 * state_->options.period, [&] {
    return state_->verdict || state_->store_failed || state_->is_cut_off() || state_->rounds >= enough;
  });
  if (state_->verdict) return state_->verdict;
  const std::string text = state_->text_of(at->second, error);
  if (error.cause() != MeshError::Cause::kAborted) state_->own_reason = text;  // for the ranks that wait for this one
  state_->verdict = std::make_exception_ptr(CommError("rank ", state_->options.rank, ": ", text));
  state_->news.notify_all();
  return state_->verdict;
}

std::string Watch::State::text_of(const Wait& wait, const MeshError& error) const {
  const std::string begin = wait.call.text();
  if (error.cause() == MeshError::Cause::kTimeout) {
    const auto missing = wait.missing && !wait.missing->empty() ? *wait.missing : error.peers();
    return cat(begin, ": waited ", wait.seconds, " s", about(missing),
               "; see what they were at in their logs, or raise ", options.timeout_name);
  }
  if (error.cause() == MeshError::Cause::kAborted) return begin + ": given up by this rank itself";
  std::string lost;
  for (const int rank : error.peers()) {
    if (peers.has_finished(rank)) return cat(begin, ": ", peers.called(rank), " has finished; ", kUnevenLoops);
    lost += cat(lost.empty() ? "" : ", ", peers.called(rank));
  }
  return cat(begin, ": the connection to ", lost.empty() ? "a peer" : lost, " broke (", error.what(),
             "): it has ended, or the network did; see its log");
}

std::exception_ptr Watch::verdict() const {
  const std::lock_guard lock(state_->mutex);
  return state_->verdict;
}

std::exception_ptr Watch::explain(uint64_t id, std::exception_ptr why) {
  std::string differs;  // the calls of this node's ranks; those of other nodes get time to post theirs
  try {
    std::rethrow_exception(why);
  } catch (const DesyncError& error) {
    differs = error.what();
  } catch (...) {
  }
  {
    std::unique_lock lock(state_->mutex);
    const auto at = state_->waits.find(id);
    if (at != state_->waits.end()) at->second.seconds = std::max(0.1, seconds_since(at->second.began_ns));
    const uint64_t enough = state_->rounds + (differs.empty() ? 3 : 8);
    state_->news.wait_for(lock, (differs.empty() ? 4 : 8) * state_->options.period,
                          [&] { return state_->verdict || state_->store_failed || state_->rounds >= enough; });
    if (state_->verdict) return state_->verdict;
  }
  if (!differs.empty()) give_up(differs);
  return why;
}

void Watch::give_up(const std::string& reason) noexcept {
  try {
    std::unique_lock lock(state_->mutex);
    if (state_->own_reason.empty()) state_->own_reason = reason.empty() ? "no reason given" : reason;
    if (!state_->verdict) {
      state_->verdict =
          std::make_exception_ptr(CommError("rank ", state_->options.rank, " gave up: ", state_->own_reason));
    }
    state_->news.notify_all();
    state_->news.wait_for(lock, 2 * state_->options.period,
                          [&] { return state_->told || state_->store_failed || state_->is_cut_off(); });
  } catch (...) {  // no memory: the peers will see this process end
  }
}

// The missing ranks and their states, and whether the store answers.
std::string Watch::State::about(const std::vector<int>& missing) const {
  constexpr double kSilent = 5;
  const double silent = seconds_since(answered_ns);
  const std::string cut = silent > kSilent ? cat("; the rendezvous store has not answered for ", silent,
                                                 " s: rank 0 is stopped, or the network to it is cut")
                                           : "";
  return peers.describe(missing) + cut;
}

}  // namespace lockstep::comm
