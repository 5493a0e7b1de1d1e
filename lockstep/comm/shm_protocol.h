// The protocol of shm_segment.h from one rank's side: publish a call, see who has, finish, and waits that can't be
// blind.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/node_memory.h"
#include "lockstep/comm/peers.h"
#include "lockstep/comm/pool.h"
#include "lockstep/comm/shm_segment.h"

namespace lockstep::comm {

// One thread; every function throws once an earlier one has, or another rank has given up.
class ShmProtocol {
 public:
  struct Options {
    int rank = 0;
    int size = 1;  // at most kMaxLocalRanks
    std::chrono::milliseconds timeout{600'000};
  };

  // `pool` is this rank's, on memory.pools[rank]; it and `board` outlive this. Throws IoError.
  ShmProtocol(Options options, const NodeMemory& memory, Pool& pool, Board* board);

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }

  // Where this rank's tensor data lies in its pool; nothing if it doesn't.
  std::optional<uint64_t> offset_of(const at::Tensor& tensor) const;
  // A tensor of the same sizes, strides and dtype in the pool.
  at::Tensor pool_like(const at::Tensor& tensor) const;
  // Offset `offset` of rank's pool, in this process.
  std::byte* at(int rank, uint64_t offset) const { return pools_[static_cast<size_t>(rank)].data() + offset; }

  // Begins the next call; returns its number. Waits only if kRing calls are under way.
  uint64_t publish(const OpRecord& record, const std::string& what);
  const OpRecord& record(int rank, uint64_t call) const;
  // Whether all ranks have published the call. Throws DesyncError if they called different things.
  bool published(uint64_t call);
  // Says that this rank has done its share of the call (calls are finished in order).
  void finish(uint64_t call);
  // Whether all ranks have finished it.
  bool complete(uint64_t call) const;

  // Wait for the two. Throw CommError as Communicator says.
  void wait_published(uint64_t call, const std::string& what);
  void wait_complete(uint64_t call, const std::string& what);

  // What to do while waiting: moving on the folds under way, which may be what the others wait for.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  void abort(const std::string& reason) noexcept;

 private:
  using Counters = std::array<ShmSegment::Counter, kMaxLocalRanks>;

  static bool all_past(const Counters& counters, uint64_t call, int size);
  std::vector<int> behind(const Counters& counters, uint64_t call) const;
  void wait_until(const std::function<bool()>& ready, const Counters& counters, uint64_t call, const std::string& what);
  void check_others(const std::string& what);
  void check_same_call(uint64_t call);
  [[noreturn]] void fail_by_timeout(const Counters& counters, uint64_t call, const std::string& what);

  Options options_;
  Pool& pool_;
  Mapping segment_memory_;
  ShmSegment* segment_;
  std::vector<Mapping> pools_;
  Peers peers_;
  uint64_t next_call_ = 0;
  uint64_t checked_ = 0;  // calls below it are known to be the same on all ranks
  int64_t spin_ns_;
  std::function<void()> meanwhile_ = [] {};
};

}  // namespace lockstep::comm
