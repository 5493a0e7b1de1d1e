// The bulletin: notes that ranks of several nodes leave for each other in the rendezvous store.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/call.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

// A group of ranks that call collectives together.
struct WatchGroup {
  std::string name;        // the same on all members, and of no other group
  std::vector<int> ranks;  // the members, as ranks of the world, by their rank in the group
};

// One call of a group.
struct Post {
  uint64_t number = 0;  // its number among the group's calls, from 1; 0: no call
  Signature signature{};
};

// A rank's last calls in a group: the one that it waits for and those before it. The earlier ones count too, for a rank
// may be through with a call that the others did not make.
struct History {
  static constexpr size_t kCalls = 8;
  std::array<Post, kCalls> calls = {};  // call n is calls[n % kCalls]

  uint64_t newest() const;                  // the highest number; 0: no calls
  const Post* find(uint64_t number) const;  // null if it is not among the last calls
  void add(const Post& post) { calls[post.number % kCalls] = post; }
};

// The reason for which all ranks have to end.
struct GivenUp {
  std::string reason;
  bool desync = false;  // whether it is the text of a DesyncError
  bool operator==(const GivenUp&) const = default;
};

// Used by one thread, which may block in the store as long as the network is cut. All members throw what c10d's store
// throws.
class Bulletin {
 public:
  Bulletin(c10::intrusive_ptr<c10d::Store> store, int rank);
  ~Bulletin();

  // Writes this rank's first heartbeat, so that heartbeats() finds one.
  void announce();
  // Writes this rank's empty history in the group, so that posts() finds one.
  void announce(const WatchGroup& group);

  // Writes this rank's heartbeat, any text that differs from the last one.
  void heartbeat(const std::string& text);
  // The latest heartbeats of these ranks, all of which must have announced themselves.
  std::vector<std::string> heartbeats(const std::vector<int>& ranks);

  // Writes this rank's history in the group.
  void post(const std::string& group, const History& history);
  // The histories of all members, by rank in the group; all of them must have announced themselves there.
  std::vector<History> posts(const WatchGroup& group);

  // Tells all ranks to give up. Only the first reason counts.
  void give_up(const GivenUp& why);
  // Why a rank gave up; nothing if none did.
  std::optional<GivenUp> given_up();

  // Notes that this rank knows that calls differ. To be called once.
  void learn_of_difference();
  // How many ranks have noted it.
  int64_t learners();

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
};

}  // namespace lockstep::comm
