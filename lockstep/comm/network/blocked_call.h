// What a rank in a blocking wait tells the others, so that ranks that wait in a circle are found (deadlock.h).
//
// Ranks count the calls that they begin by channel: a group's collectives, and the sends and receives of one tag
// between two ranks. A wait needs a call of some number on a channel of other ranks. Whether they have begun it shows
// by their counts, whatever is on its way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/deadlock.h"

namespace lockstep::comm {

// The numbers of the calls that a rank has begun.
class BegunCalls {
 public:
  // Counts call `number`, from 1, of the channel, whose name has no blanks.
  void add(const std::string& channel, uint64_t number);
  // Whether the call has been begun, or may have been: channels that were not used for long are forgotten.
  bool may_have(const std::string& channel, uint64_t number) const;

  std::string encode() const;  // one line
  static BegunCalls decode(const std::string& line);

 private:
  static constexpr size_t kMost = 256;
  struct Newest {
    uint64_t number, used;
  };
  std::map<std::string, Newest> channels_;
  uint64_t uses_ = 0;
  bool forgot_ = false;
};

struct BlockedCall {
  uint64_t wait = 0;  // the wait's number among the rank's waits, from 1
  OpKind kind = OpKind::kBarrier;
  int peer = 0, tag = 0;        // of a message, a rank of the world
  std::string what = {};        // see WaitingRank
  std::string needs = {};       // the channel of the calls that it needs
  uint64_t number = 0;          // their number
  std::vector<int> ranks = {};  // the ranks that have to begin them
  BegunCalls begun = {};        // by this rank

  std::string encode() const;  // lines
  static std::optional<BlockedCall> decode(const std::string& lines);
};

// The ranks in blocking waits, with those that each of them waits for. `beats` and `calls` are by rank.
std::vector<WaitingRank> waiting_ranks(const std::map<int, BlockedCall>& calls, const std::map<int, uint64_t>& beats);

}  // namespace lockstep::comm
