// The state of a watch, which its thread and the waits share.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/comm/network/bulletin.h"
#include "lockstep/comm/network/peer_states.h"
#include "lockstep/comm/network/watch.h"

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
  bool knows = false;          // whether this rank has the text of the DesyncError
  bool noted = false;          // whether the store has it that this rank knows
  bool all_know = false;       // on rank 0: whether all ranks do
  int explained = 0;           // waits that have failed by themselves, and whose error is not known yet
  std::exception_ptr verdict;  // the error with which all waits end
  int64_t answered_ns = monotonic_ns();
  bool store_failed = false;
  int64_t warned_ns = 0;
  uint64_t rounds = 0;
  bool finished = false;  // whether the thread has ended

  // One round of the thread: beats, posts, reads, judges. It talks to the store without holding the lock.
  void run_round(std::unique_lock<std::mutex>& lock);
  void note_difference(std::unique_lock<std::mutex>& lock);
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
  std::vector<int> missing_in(const Wait& wait, const MeshError& error) const;  // of a wait whose time has passed
  std::string text_of(const Wait& wait, const MeshError& error) const;
  // All waits end with this error of this rank's, which `tells` the other ranks of it.
  std::exception_ptr end_with(const std::string& text, bool tells = true);
  std::string about(const std::vector<int>& missing) const;
};

}  // namespace lockstep::comm
