#include "lockstep/comm/network/watch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/comm/network/watch_state.h"

namespace lockstep::comm {

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
    state_->news.wait_for(lock, 10 * state_->options.period, [&] { return state_->store_failed || state_->all_know; });
  }
  state_->ending = true;
  state_->options.stop_waits = state_->options.check = [] {};
  state_->news.notify_all();
  state_->news.wait_for(lock, kPatience, [&] { return state_->finished || state_->is_cut_off(); });
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
  const uint32_t world = state_->peers.begin_block();
  return {nullptr, [state = state_, id, world](void*) {
            const std::lock_guard at_end(state->mutex);
            state->blocked.erase(id);
            state->peers.end_block(world);
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
  // A rank of this node can't hide its end, which shows a moment after its connections' end.
  const bool is_here = std::ranges::any_of(error.peers(), [&](int rank) { return state_->peers.is_here(rank); });
  if (error.cause() == MeshError::Cause::kBroken && is_here) {
    constexpr std::chrono::milliseconds kMoment{50}, kLook{2};
    std::string fate;
    for (const Deadline moment(kMoment); !state_->verdict && !moment.passed();) {
      fate = state_->peers.fate_here(error.peers());
      if (!fate.empty()) break;
      state_->news.wait_for(lock, kLook);
    }
    if (!fate.empty() && !state_->verdict) return state_->end_with(cat(at->second.call.text(), ": ", fate));
  }
  // The timeout of one call ends this rank's others, too, which leave the explanation to it.
  const bool is_aborted = error.cause() == MeshError::Cause::kAborted;
  state_->explained += is_aborted ? 0 : 1;
  // The current round may have begun before this wait. A comparison takes two rounds: one posts, a later one reads.
  const uint64_t enough = state_->rounds + (error.cause() == MeshError::Cause::kTimeout ? 3 : 2);
  // Where calls differ, the verdict comes once all ranks have posted theirs, or a few rounds later.
  state_->news.wait_for(lock, 10 * state_->options.period, [&] {
    return state_->verdict || state_->store_failed || state_->is_cut_off() ||
           (state_->rounds >= enough && !state_->differs && !(is_aborted && state_->explained > 0));
  });
  state_->explained -= is_aborted ? 0 : 1;
  if (state_->verdict) return state_->verdict;
  const std::string text = state_->text_of(at->second, error);
  if (error.cause() == MeshError::Cause::kTimeout) state_->peers.tell_missed(state_->missing_in(at->second, error));
  return state_->end_with(text, /*tells=*/!is_aborted);
}

std::exception_ptr Watch::State::end_with(const std::string& text, bool tells) {
  if (tells) own_reason = text;  // for the ranks that wait for this one
  verdict = std::make_exception_ptr(CommError("rank ", options.rank, ": ", text));
  news.notify_all();
  return verdict;
}

std::vector<int> Watch::State::missing_in(const Wait& wait, const MeshError& error) const {
  return wait.missing && !wait.missing->empty() ? *wait.missing : error.peers();
}

std::string Watch::State::text_of(const Wait& wait, const MeshError& error) const {
  const std::string begin = wait.call.text();
  if (error.cause() == MeshError::Cause::kTimeout) {
    return cat(begin, ": waited ", wait.seconds, " s", about(missing_in(wait, error)),
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
    if (!differs.empty()) state_->differs = true;
    const uint64_t enough = state_->rounds + (differs.empty() ? 3 : 8);
    state_->news.wait_for(lock, (differs.empty() ? 4 : 8) * state_->options.period,
                          [&] { return state_->verdict || state_->store_failed || state_->rounds >= enough; });
    if (!differs.empty()) state_->knows = true;
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
