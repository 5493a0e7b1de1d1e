// One process's view of its node, shared by all communicators over it: the pools, the peers, and waits on the doorbell
// that notice when a peer dies.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/memory/pool.h"
#include "lockstep/comm/reduce.h"
#include "lockstep/comm/shm/peers.h"
#include "lockstep/comm/shm/shm_segment.h"
#include "lockstep/comm/shm/wait_reports.h"

namespace lockstep::comm {

// An owned block of this rank's pool and its offset there. An empty one owns nothing.
struct PoolBlock {
  c10::DataPtr memory;
  uint64_t offset = 0;

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory.get());
  }
  explicit operator bool() const { return memory.get() != nullptr; }
};

// The memory of all ranks of the node, as mapped into this process. Ranks that are threads may share the same mappings,
// so that a sanitizer sees how they access each other's memory.
struct ShmMemory {
  // Maps all of `memory`. Throws IoError.
  explicit ShmMemory(const NodeMemory& memory);
  // Uses memory that the caller has mapped and that outlives this.
  ShmMemory(ShmSegment* at, std::vector<std::byte*> pools_at) : segment(at), pools(std::move(pools_at)) {}

  std::vector<Mapping> mappings;
  ShmSegment* segment;
  std::vector<std::byte*> pools;  // by local rank
};

// Work on which a process makes progress while it waits for something else, because other ranks may wait for that work.
class Progressable {
 public:
  virtual ~Progressable() = default;
  virtual void advance() = 0;              // makes progress without waiting
  virtual bool needs_polling() const = 0;  // whether it waits for an event that does not ring the doorbell
};

// Ranks are local ranks, which number the board's entries and the pools. One thread.
class ShmNode {
 public:
  struct Options {
    int self = 0;
    int size = 1;                                       // at most kMaxLocalRanks
    std::vector<int> world_ranks = {};                  // by local rank, for messages; empty: the local ranks
    std::function<void(const std::string&)> warn = {};  // gets each warning; default: it goes to the log
    std::string timeout_name = "the timeout";           // what the user sets it by, for messages
  };

  // `pool` is this rank's pool, over memory.pools[self]. It and `board` outlive this. Throws ConfigError.
  ShmNode(Options options, ShmMemory memory, Pool& pool, Board* board);
  // Segments that not all of their group's ranks have left are kept to the end of the process.
  ~ShmNode();
  ShmNode(const ShmNode&) = delete;
  ShmNode& operator=(const ShmNode&) = delete;

  int self() const { return options_.self; }
  int size() const { return options_.size; }
  ShmSegment& segment() const { return *memory_.segment; }
  Peers& peers() { return peers_; }

  // The offset of [data, data + bytes) in this rank's pool; nothing if it is not all in the pool. 0 for no bytes.
  std::optional<uint64_t> offset_of(const void* data, size_t bytes) const;
  // Allocates a block of this rank's pool. Throws IoError.
  PoolBlock allocate(size_t bytes);
  // The address, in this process, of offset `offset` of a rank's pool.
  std::byte* at(int local_rank, uint64_t offset) const {
    return memory_.pools[static_cast<size_t>(local_rank)] + offset;
  }

  // Allocates a segment of zeros for a group in this rank's pool.
  PoolBlock make_segment();
  // Keeps a group's segment after this rank has left the group, until all `members` of them have left it.
  void retire(PoolBlock segment, uint32_t members);

  // Registers and unregisters work, which is not owned.
  void add(Progressable* work) { progressables_.push_back(work); }
  void remove(Progressable* work) { std::erase(progressables_, work); }
  // Makes progress on all registered work, without waiting.
  void advance();

  // A wait for a condition.
  struct Waiting {
    const std::string& what;                        // the call's name in messages
    std::function<bool()> ready;                    // the condition
    std::function<std::vector<int>()> awaited;      // the ranks that have still to act: none of them may be dead
    std::function<std::vector<int>()> missing;      // the ranks that hold up all others now, for messages
    std::chrono::nanoseconds timeout;               // the call's; after a tenth of it a warning names the missing ranks
    std::chrono::nanoseconds grace{0};              // the time for which the wait lasts beyond its timeout
    std::function<WaitingRank()> blocked = {};      // this rank's wait, if it begins no call before the condition holds
    std::function<std::vector<int>()> absent = {};  // the missing ranks that have not begun the call
  };
  // The clock of waits: Board::running_ns().
  int64_t running_ns() const { return peers_.board().running_ns(); }
  // Whether a wait that began at `began_ns` of that clock, and whose timeout has passed, goes on all the same: all
  // absent ranks have made progress (saved, evaluated) within the last timeout or, where none is absent, one that has
  // still to act. A rank that waits for others has made theirs; so a wait for other nodes goes on as long as those of
  // this node do that wait for them.
  bool goes_on(const Waiting& waiting, int64_t began_ns);
  // Makes progress on all work until the condition holds, for at most `time`; returns whether it holds. Throws
  // CommError if an awaited peer died or finished or any rank gave up, DesyncError if ranks wait in a circle, and
  // whatever advance() throws.
  bool wait_until(const Waiting& waiting, std::chrono::nanoseconds time);
  // For callers that poll instead: whether the next check of the peers is due, and the check, which throws as
  // wait_until() and passes on, as it does, the progress of those that the wait is for.
  bool check_is_due();
  void check_peers(const Waiting& waiting);
  // Throws CommError with the reason, or DesyncError, once any rank has given up. `what`: the call's name in messages.
  void check_given_up(const std::string& what) const;
  // The missing ranks and their states: "rank 2 (pid 811), which is alive, …" or "ranks 2-3: rank 2 (pid 811) is …, …".
  std::string missing_text(const std::vector<int>& missing) const;
  // The error of a wait whose time has passed, which the board is told of. `more`: what its text ends with.
  CommError timed_out(const Waiting& waiting, const std::string& more = "") const;

  // For this rank's reductions, one after the other.
  FoldScratch& scratch() { return scratch_; }

  // Whether a rank of the node has given up.
  bool is_aborted() const { return segment().aborted.load(std::memory_order_relaxed) != 0; }
  // Tells all ranks of the node that this one gives up; with `is_desync` they throw DesyncError with the reason.
  void abort(const std::string& reason, bool is_desync = false) noexcept;

 private:
  bool spin(const Waiting& waiting, std::chrono::nanoseconds time);
  void warn(const Waiting& waiting, double seconds);
  void look_for_circle(const Waiting& waiting);
  int64_t progress_of(const Waiting& waiting) const;
  void note_pauses();
  void sweep();

  Options options_;
  Pool& pool_;
  ShmMemory memory_;
  Peers peers_;
  WaitReports reports_;
  int64_t spin_ns_;
  std::vector<Progressable*> progressables_;
  bool advancing_ = false;
  FoldScratch scratch_;
  int64_t checked_ns_ = 0;
  int64_t paused_ns_ = 0, resumed_ns_ = 0;               // the board's paused_ns, and monotonic_ns() when it changed
  std::vector<std::pair<PoolBlock, uint32_t>> retired_;  // segments and the sizes of their groups
};

}  // namespace lockstep::comm
