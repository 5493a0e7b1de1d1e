// What ranks of several nodes leave for each other in the rendezvous store. Used by one thread, which may hang in it as
// long as the network is cut. All throw what c10d's store throws.
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

// Some ranks of the world that call collectives together, by their place in the group.
struct WatchGroup {
  std::string name;
  std::vector<int> ranks;
};

// A call of a group.
struct Post {
  uint64_t number = 0;  // of the group's calls, from 1; 0: none
  Signature signature{};
};

// What a rank says of its calls in a group: the one that it waits for and those before it, for a rank may be through
// with a call that the others did not make.
struct History {
  static constexpr size_t kCalls = 8;
  std::array<Post, kCalls> calls = {};  // that of number n at n % kCalls

  uint64_t newest() const;
  const Post* find(uint64_t number) const;  // null where it is none of the last
  void add(const Post& post) { calls[post.number % kCalls] = post; }
};

class Bulletin {
 public:
  Bulletin(c10::intrusive_ptr<c10d::Store> store, int rank);
  ~Bulletin();

  // Leaves empty notes, which readers may count on afterwards: of this rank, and of it in a group.
  void announce();
  void announce(const WatchGroup& group);

  void heartbeat(const std::string& text);  // a sign of life: any text that differs from the last
  std::vector<std::string> heartbeats(const std::vector<int>& ranks);

  void post(const WatchGroup& group, const History& history);
  std::vector<History> posts(const WatchGroup& group);  // by place in the group

  void give_up(const std::string& reason);  // the first one counts
  std::optional<std::string> given_up();

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
};

}  // namespace lockstep::comm
