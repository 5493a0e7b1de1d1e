// Runs the lanes of one rank as threads that take turns: one runs, the others wait. SyncBatchNorm needs it: in the
// middle of a forward or backward each lane exchanges values with the others, and continues when all have come.
//
// Lane 0 runs until it calls meet(), then lane 1 does, and so on. The last lane to come performs the exchange, and then
// lane 0 continues. So between two exchanges lanes run in their order, whatever the machine does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::parallel {

class LaneTurns {
 public:
  // Called when the turn passes from lane `from` to lane `to`, on the thread of `from`. The first call of a run has no
  // `from`, and the last has no `to`: they are kNone.
  static constexpr size_t kNone = SIZE_MAX;
  using OnSwitch = std::function<void(size_t from, size_t to)>;

  LaneTurns() = default;
  ~LaneTurns();  // joins the threads
  LaneTurns(const LaneTurns&) = delete;
  LaneTurns& operator=(const LaneTurns&) = delete;

  // Runs lane(i) for 0 <= i < lanes. Each lane has a thread of its own with the caller's libtorch settings (autocast,
  // gradient mode) and its current device and stream; a single lane runs on the caller's thread. Returns when all lanes
  // have ended. Throws the first lane's error; the other lanes end at their next exchange.
  void run(size_t lanes, const std::function<void(size_t)>& lane, const OnSwitch& on_switch);

  // Waits, within a lane, until all lanes have called it. `when_all` runs once, on the thread of the last lane to come,
  // before any of them returns. Throws ConfigError if a lane has ended without coming.
  void meet(const std::function<void()>& when_all);

  size_t current() const { return current_; }  // the lane whose turn it is

 private:
  void work(size_t lane);
  void run_current();
  void pass_turn();
  void switch_turn(size_t from, size_t to);
  size_t next_after(size_t lane) const;
  void start_threads(size_t lanes);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  std::function<void(size_t)> lane_;  // the function of the run under way
  OnSwitch on_switch_;
  size_t lanes_ = 0;  // in the run under way; 0 outside of runs
  size_t current_ = kNone;
  std::vector<bool> ended_;  // by lane
  uint64_t exchanges_ = 0;   // so far, in this and earlier runs
  std::exception_ptr error_;
  bool closing_ = false;
};

}  // namespace lockstep::parallel
