// A call under way, as the watch knows it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/call.h"
#include "lockstep/comm/network/blocked_call.h"
#include "lockstep/comm/network/bulletin.h"

namespace lockstep::comm {

struct WatchedCall {
  WatchGroup group = {};  // without ranks for a message: only collectives are compared
  uint64_t number = 0;    // its number among the group's calls, from 1; a message's on its channel
  Signature signature{};
  std::string label;
  std::chrono::nanoseconds timeout{};
  // Of a message.
  std::vector<int> expects = {};  // the rank that it waits for
  int tag = 0;
  std::string channel = {};  // of this rank's messages
  std::string needs = {};    // of the peer's

  bool is_message() const { return group.ranks.empty(); }
  // The channel (blocked_call.h) on which this rank's call counts.
  const std::string& own_channel() const { return is_message() ? channel : group.name; }
  std::string text() const;  // for messages: "fold of bucket 1/2 (w), call #3"
};

// What the members of a call's group have called, as far as they have posted it.
struct Comparison {
  std::vector<int> missing = {};                      // those that have not begun the call, in their order
  bool differs = false;                               // whether some rank has called something else
  std::vector<std::optional<Signature>> called = {};  // by rank of the world
};

// Compares a call of rank `self` with the histories of its group's members, by rank in the group.
Comparison compare(const WatchedCall& call, int self, const std::vector<History>& posts);

// The call as one that this rank's thread waits for, its wait `wait`, in a world of `size` ranks.
BlockedCall blocked_call(uint64_t wait, const WatchedCall& call, const BegunCalls& begun, size_t size);

}  // namespace lockstep::comm
