// The watch over waits on a network. Through the rendezvous store ranks tell each other that they are alive, which call
// they wait for once a wait lasts long, and that they give up. Ranks whose calls differ exchange no data (exchange.h):
// they wait, post what they called, and compare. Ranks whose threads wait for each other in a circle find that too.
// Ranks that make progress are waited for beyond the timeout.
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
#include "lockstep/comm/network/watched_call.h"
#include "lockstep/comm/rank_table.h"

namespace lockstep::comm {

class Watch {
 public:
  struct Options {
    int rank = 0;
    RankTable ranks = {};
    Board* board = nullptr;                                                    // this node's, or null
    std::function<void(const std::string&)> warn = [](const std::string&) {};  // gets each warning
    std::function<void()> stop_waits = [] {};  // called on the watch's thread when all waits must end
    std::function<void()> check = [] {};       // called on it in every round (Mesh::check)
    std::chrono::milliseconds period{500};     // of the thread's rounds; a wait is long after twice this time
    std::string timeout_name = "the timeout";  // what the user sets it by, for messages
  };

  // Starts the watch's thread, which alone uses the bulletin from then on.
  Watch(Options options, std::unique_ptr<Bulletin> bulletin);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Counts a call that this rank begins, for the search for circles. Any thread.
  void begin(const WatchedCall& call);
  // The call is one that has begun, and this rank's thread waits for it without beginning another, as long as the
  // result lives. Any thread; the watch outlives the result.
  [[nodiscard]] std::shared_ptr<void> block(const WatchedCall& call);

  // Adds a call that has begun to this rank's history, which others compare with the calls that they wait for. Any
  // thread.
  void note(const WatchedCall& call);
  // Begins a wait for a call, which is noted as well, and returns the wait's number. Any thread.
  uint64_t enter(const WatchedCall& call);
  // Ends a wait. Any thread.
  void leave(uint64_t wait);

  // The time that is left to a wait. Its timeout begins anew with each progress that all the ranks make that are
  // missing (PeerStates::progress_of), and stands still while the launcher has this node's ranks stopped. Any thread;
  // asks the store for nothing.
  std::chrono::nanoseconds left(uint64_t wait) const;
  // That of the wait that ends last; 0 if there is none. Any thread.
  std::chrono::nanoseconds longest_left() const;

  // Warns once when a wait has lasted a tenth of its timeout: who is missing, and in what state they are. Any thread.
  void warn_if_late(uint64_t wait);

  // The error to throw for a wait whose exchange failed: a CommError or DesyncError. May wait a few periods to learn
  // the cause. Any thread.
  std::exception_ptr explain(uint64_t wait, const MeshError& error);

  // The error with which all waits end; null as long as nothing ends them. Any thread.
  std::exception_ptr verdict() const;

  // The error to throw for a wait that failed with `why` outside an exchange: the verdict if there is one within a few
  // periods, otherwise `why`. If `why` is a DesyncError, all ranks are told to give up because of it. Any thread.
  std::exception_ptr explain(uint64_t wait, std::exception_ptr why);

  // Tells all ranks to give up, and waits a moment until the store has the reason. Only the first reason counts. Any
  // thread.
  void give_up(const std::string& reason) noexcept;

  // Announces this rank as a member of a new group. Every member must have announced itself before any of them waits.
  void announce(const WatchGroup& group);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with the thread, which is left behind if it blocks in the store
};

}  // namespace lockstep::comm
