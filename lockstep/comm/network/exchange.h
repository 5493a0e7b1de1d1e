// The exchange of one call's messages among the members of a group, in rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/comm/network/mesh.h"

namespace lockstep::comm {

// The members of a group.
struct Members {
  std::vector<int> ranks;  // as ranks of the mesh, by their rank in the group
  int self = 0;            // this process's rank in the group
  int size() const { return static_cast<int>(ranks.size()); }
};

// A piece of memory that is sent to or received from a member. Empty pieces are left out on both sides.
struct Piece {
  int member;  // a rank in the group
  const void* data;
  size_t bytes;
};

// One thread.
class Exchange {
 public:
  // `salt` is a hash of what must be equal on all members: the group and the call's signature. The messages' tags are
  // made of it, the call's number, the round and the length. Members whose calls differ therefore never exchange a
  // byte: they wait, and a rank that waits long compares its call with the others' (watch.h). `mesh` and `members`
  // outlive this.
  Exchange(Mesh& mesh, const Members& members, uint64_t salt, uint64_t number, const Deadline& deadline)
      : mesh_(mesh), members_(members), salt_(salt), number_(number), deadline_(deadline) {}

  const Members& members() const { return members_; }
  int self() const { return members_.self; }
  uint64_t salt() const { return salt_; }
  int size() const { return members_.size(); }

  // One round: sends and receives these pieces, and returns when all of them are through. Throws MeshError.
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
