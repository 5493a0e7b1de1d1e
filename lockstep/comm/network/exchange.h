// The exchange of one call's messages among the members of a group, in rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/comm/network/mesh.h"

namespace lockstep::comm {

// The members of a group.
struct Members {
  std::vector<int> ranks;  // as ranks of the mesh, by their rank in the group
  int self = 0;            // this process's rank in the group
  int number = 0;          // the group's (group_numbers.h)
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
  // `salt` is a hash of what must be equal on all members: the group and the call's signature. A collective's tags are
  // made of the group's number and a hash of salt, the call's number, the round and the length. Members whose calls
  // differ therefore never exchange a byte: they wait, and a rank that waits long compares its call with the others'
  // (watch.h). `mesh` and `members` outlive this.
  Exchange(Mesh& mesh, const Members& members, uint64_t salt, uint64_t number, Patience patience)
      : mesh_(mesh), members_(members), salt_(salt), number_(number), patience_(std::move(patience)) {}

  // The messages of one tag between two members that may be under way at once: their numbers' lowest bits differ.
  static constexpr uint64_t kMostMessages = 16;
  // The same for a message of users': the tags are made of the group's number, the user's tag, and `number`, the
  // message's number among those of its tag. User's tags up to 32767 are all different; others may be equal where their
  // low 15 bits are, which the message's header shows.
  Exchange(Mesh& mesh, const Members& members, uint64_t salt, uint64_t number, Patience patience, int user_tag)
      : Exchange(mesh, members, salt, number, std::move(patience)) {
    user_tag_ = user_tag;
  }

  const Members& members() const { return members_; }
  int self() const { return members_.self; }
  uint64_t salt() const { return salt_; }
  int size() const { return members_.size(); }

  // One round: sends and receives these pieces, and returns when all of them are through. Throws MeshError.
  void operator()(const std::vector<Piece>& sends, const std::vector<Piece>& receives);

 private:
  std::vector<Message> messages_of(const std::vector<Piece>& pieces) const;
  uint32_t tag_of(size_t bytes) const;

  Mesh& mesh_;
  const Members& members_;
  uint64_t salt_, number_;
  uint64_t round_ = 0;
  std::optional<int> user_tag_;
  Patience patience_;
};

}  // namespace lockstep::comm
