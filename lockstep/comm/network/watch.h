// Waits over a network that are not blind. Ranks tell each other, through the rendezvous store, that they live, what
// they wait for once a wait lasts, and that they give up. Ranks that call different things exchange no data
// (exchange.h): they wait, post what they called, and compare.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/comm/network/bulletin.h"
#include "lockstep/comm/network/mesh.h"
#include "lockstep/comm/rank_table.h"

namespace lockstep::comm {

// A call under way.
struct WatchedCall {
  WatchGroup group = {};          // without ranks for a message, which nobody compares
  std::vector<int> expects = {};  // of a message: whom it waits for
  uint64_t number = 0;            // of the group's calls, from 1
  Signature signature{};
  std::string label;
  std::chrono::nanoseconds timeout{};
};

class Watch {
 public:
  struct Options {
    int rank = 0;
    RankTable ranks = {};
    Board* board = nullptr;  // this node's, or null
    std::function<void(const std::string&)> warn = [](const std::string&) {};
    std::function<void()> stop_waits = [] {};  // called on another thread when all waits must end
    std::chrono::milliseconds period{500};     // between looks; a wait of twice as long is a long one
  };

  // The bulletin is then used by a thread of the watch's alone.
  Watch(Options options, std::unique_ptr<Bulletin> bulletin);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // A call has begun, waited for or not: what others compare their long waits with.
  void note(const WatchedCall& call);
  // Bracket a call's wait; what is entered need not be noted. Any thread.
  uint64_t enter(const WatchedCall& call);
  void leave(uint64_t wait);

  // Warns, once a wait, when a tenth of the timeout has passed: who is missing, and how they are.
  void warn_if_late(uint64_t wait);

  // What to throw for a wait whose exchange failed: a CommError or DesyncError. May take a few periods, to hear why.
  std::exception_ptr explain(uint64_t wait, const MeshError& error);

  // Why all waits end; null as long as nothing ends them.
  std::exception_ptr verdict() const;

  // What to throw for a wait that ended with `why` on other ground than an exchange: the verdict, if one comes within a
  // few periods, else `why`, which the others are told where it is a DesyncError.
  std::exception_ptr explain(uint64_t wait, std::exception_ptr why);

  // Tells all ranks to give up; the first reason counts. Waits a moment for it to get through.
  void give_up(const std::string& reason) noexcept;

  // A member of a new group says that it is there; before any member of it waits.
  void announce(const WatchGroup& group);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with the thread, which is left behind if it hangs in the store
};

}  // namespace lockstep::comm
