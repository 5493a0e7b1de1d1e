// What ranks of several nodes leave for each other in the rendezvous store. Used by one thread, which may hang in it as
// long as the network is cut. All throw what c10d's store throws.
#pragma once

#include <c10/util/intrusive_ptr.h>

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

// What a rank says of its wait in a group.
struct Post {
  uint64_t number = 0;  // of the call, from 1; 0: no wait has been long
  Signature signature{};
};

class Bulletin {
 public:
  Bulletin(c10::intrusive_ptr<c10d::Store> store, int rank);
  ~Bulletin();

  // Leaves empty notes, which readers may count on afterwards: of this rank, and of it in a group.
  void announce();
  void announce(const WatchGroup& group);

  void beat(const std::string& text);  // a sign of life: any text that differs from the last
  std::vector<std::string> beats(const std::vector<int>& ranks);

  void post(const WatchGroup& group, const Post& post);
  std::vector<Post> posts(const WatchGroup& group);  // by place in the group

  void give_up(const std::string& reason);  // the first one counts
  std::optional<std::string> given_up();

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
};

}  // namespace lockstep::comm
