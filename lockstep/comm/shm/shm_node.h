// One process's view of its node, shared by all communicators over it: the pools, the peers, the bell, and waits that
// can't be blind.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/node_memory.h"
#include "lockstep/comm/memory/pool.h"
#include "lockstep/comm/shm/peers.h"
#include "lockstep/comm/shm/shm_segment.h"

namespace lockstep::comm {

// A block of this rank's pool, and where in it it lies.
struct PoolBlock {
  c10::DataPtr memory;
  uint64_t offset = 0;

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory.get());
  }
  explicit operator bool() const { return memory.get() != nullptr; }
};

// Where this process has the memory of all ranks of its node. Threads that are ranks may share one view, so that a
// sanitizer sees what they do to each other's memory.
struct ShmMemory {
  explicit ShmMemory(const NodeMemory& memory);  // maps all of it; throws IoError
  ShmMemory(ShmSegment* at, std::vector<std::byte*> pools_at) : segment(at), pools(std::move(pools_at)) {}

  std::vector<Mapping> mappings;
  ShmSegment* segment;
  std::vector<std::byte*> pools;  // by rank
};

// What a process moves on while it waits, for others may wait for just that.
class Progressable {
 public:
  virtual ~Progressable() = default;
  virtual void advance() = 0;              // as far as it goes without waiting
  virtual bool needs_polling() const = 0;  // waits for something that does not ring the bell
};

// One thread. Ranks are places: numbers on the node, as the board and the pools have them.
class ShmNode {
 public:
  struct Options {
    int self = 0;
    int size = 1;                       // at most kMaxLocalRanks
    std::vector<int> world_ranks = {};  // by place, for messages; empty: the places
    std::function<void(const std::string&)> warn = {};
  };

  // `pool` is this rank's, on memory.pools[self]; it and `board` outlive this. Throws ConfigError.
  ShmNode(Options options, ShmMemory memory, Pool& pool, Board* board);

  int self() const { return options_.self; }
  int size() const { return options_.size; }
  ShmSegment& segment() const { return *memory_.segment; }
  Peers& peers() { return peers_; }

  // Where the data lies in this rank's pool; nothing if it doesn't. Nothing lies anywhere.
  std::optional<uint64_t> offset_of(const void* data, size_t bytes) const;
  PoolBlock allocate(size_t bytes);
  // Offset `offset` of a rank's pool, in this process.
  std::byte* at(int local_rank, uint64_t offset) const {
    return memory_.pools[static_cast<size_t>(local_rank)] + offset;
  }

  // A group's segment in this rank's pool, all zeros; kept after the group is gone until all `members` have left it.
  PoolBlock make_segment();
  void retire(PoolBlock segment, uint32_t members);

  void add(Progressable* each) { progressables_.push_back(each); }
  void remove(Progressable* each) { std::erase(progressables_, each); }
  void advance();

  struct Waiting {
    const std::string& what;  // what messages call it
    std::function<bool()> ready;
    std::function<std::vector<int>()> awaited;  // who has still to act for it to be ready: none may be dead
    std::function<std::vector<int>()> missing;  // who keeps everyone waiting now, for messages
    std::chrono::nanoseconds patience;          // after which a warning says who is missing
  };
  // Moves everything on until it is ready, for at most `time`; whether it is. Throws CommError for peers that died,
  // gave up or have finished, and what moving on throws.
  bool wait_until(const Waiting& waiting, std::chrono::nanoseconds time);
  // For who polls: now and then looks whether the others live, and throws as wait_until().
  bool check_is_due();
  void check_peers(const Waiting& waiting);
  // "rank 2; rank 2 (pid 811) is alive, at …" or "ranks 2-3; …".
  std::string missing_text(const std::vector<int>& missing) const;

  void abort(const std::string& reason) noexcept;

 private:
  bool spin(const Waiting& waiting, std::chrono::nanoseconds time);
  void warn(const Waiting& waiting);
  void sweep();

  Options options_;
  Pool& pool_;
  ShmMemory memory_;
  Peers peers_;
  int64_t spin_ns_;
  std::vector<Progressable*> progressables_;
  bool advancing_ = false;
  int64_t checked_ns_ = 0;
  std::vector<std::pair<PoolBlock, uint32_t>> retired_;  // segments with the number of their members
};

}  // namespace lockstep::comm
