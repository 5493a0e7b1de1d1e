// The lanes of one rank as threads that take turns: one runs, the others wait. For what needs values of all lanes in
// the middle of a forward or backward (SyncBatchNorm): there every lane meets the others, and goes on when all have
// come.
//
// Lane 0 runs until it meets, then lane 1 and so on; the last to come does what is to be done with all of them, and
// then lane 0 goes on. So between two exchanges lanes run in their order, whatever the machine does.
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
  // Called when the turn goes over, on the thread that gives it away: `from` stops, `to` goes on. A lane's first turn
  // has no `from` if no lane ran before it, and its last no `to`.
  static constexpr size_t kNone = SIZE_MAX;
  using OnSwitch = std::function<void(size_t from, size_t to)>;

  LaneTurns() = default;
  ~LaneTurns();  // joins the threads
  LaneTurns(const LaneTurns&) = delete;
  LaneTurns& operator=(const LaneTurns&) = delete;

  // Runs lane(i) for 0 <= i < lanes, each on a thread of its own that has this thread's libtorch settings (autocast,
  // gradient mode); a single one on this thread. Returns when all have ended; throws the first error, having ended the
  // others at their next exchange.
  void run(size_t lanes, const std::function<void(size_t)>& lane, const OnSwitch& on_switch);

  // From within a lane. `when_all` runs once, on the thread of the last lane to come; all return after it. Throws
  // ConfigError if a lane has ended without coming.
  void meet(const std::function<void()>& when_all);

  size_t current() const { return current_; }  // the lane that runs

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
  std::function<void(size_t)> lane_;  // of the run under way
  OnSwitch on_switch_;
  size_t lanes_ = 0;  // of the run under way; 0: none
  size_t current_ = kNone;
  std::vector<bool> ended_;  // by lane
  uint64_t exchanges_ = 0;   // that all lanes came to
  std::exception_ptr error_;
  bool closing_ = false;
};

}  // namespace lockstep::parallel
