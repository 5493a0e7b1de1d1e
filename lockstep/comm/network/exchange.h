// The messages of one call among the members of a group, in rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/comm/network/mesh.h"

namespace lockstep::comm {

// The ranks that take part, as ranks of the mesh, and this one's place among them.
struct Members {
  std::vector<int> ranks;
  int self = 0;
  int size() const { return static_cast<int>(ranks.size()); }
};

// A piece of memory to or from a member; empty ones are left out on both sides.
struct Piece {
  int member;
  const void* data;
  size_t bytes;
};

class Exchange {
 public:
  // `salt` is a hash of what must be equal on all members: the group and the call's signature. It goes into the
  // messages' tags with the call's number, the round and the length, so that members which call different things never
  // exchange a byte: they wait, and whoever waits long compares notes (watch.h).
  Exchange(Mesh& mesh, const Members& members, uint64_t salt, uint64_t number, const Deadline& deadline)
      : mesh_(mesh), members_(members), salt_(salt), number_(number), deadline_(deadline) {}

  const Members& members() const { return members_; }
  int self() const { return members_.self; }
  uint64_t salt() const { return salt_; }
  int size() const { return members_.size(); }

  // One round: returns when all pieces have come and gone. Throws MeshError.
  void operator()(const std::vector<Piece>& sends, const std::vector<Piece>& receives);

 private:
  std::vector<Message> messages_of(const std::vector<Piece>& pieces) const;

  Mesh& mesh_;
  const Members& members_;
  uint64_t salt_, number_;
  uint64_t round_ = 0;
  Deadline deadline_;
};

}  // namespace lockstep::comm
