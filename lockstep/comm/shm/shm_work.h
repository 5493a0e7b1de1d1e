// The base classes of calls under way over shared memory.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/shm/shm_protocol.h"

namespace lockstep::comm {

class ShmWork : public Work {
 public:
  ShmWork(ShmProtocol& protocol, const Call& call) : ShmWork(protocol, call, call.label()) {}
  // `what` is the call's name in messages.
  ShmWork(ShmProtocol& protocol, const Call& call, std::string what);

  bool done() final;
  bool wait_for(std::chrono::nanoseconds time) final;
  void wait() final;
  std::chrono::nanoseconds elapsed() const final;

  // Whether the call is done, as far as advance() has seen.
  bool is_done() const { return done_; }

 protected:
  // The local ranks that have still to act, and those among them that hold up all others now. The latter are none while
  // the call waits for other nodes.
  virtual std::vector<int> awaited() const = 0;
  virtual std::vector<int> missing() const = 0;
  // The missing ones that have not begun the call, where several may wait for one another.
  virtual std::vector<int> absent() const { return {}; }
  // This rank's wait for the call: the ranks that have not begun their part, and the call in words.
  virtual WaitingRank blocked() const = 0;
  // The time for which the call waits beyond its timeout.
  virtual std::chrono::nanoseconds grace() const { return std::chrono::nanoseconds(0); }
  void mark_done();
  // Ends the call: its waits throw DesyncError with this text.
  void fail(std::string error) { error_ = std::move(error); }

  ShmProtocol& protocol_;

 private:
  ShmNode::Waiting waiting() const;
  bool wait_until(const ShmNode::Waiting& waiting, std::chrono::nanoseconds time);
  void check();
  bool result() const;

  std::string what_;
  std::string error_;
  std::chrono::milliseconds timeout_;
  int64_t begun_running_ns_;  // of ShmNode::running_ns()
  int64_t begun_ns_ = monotonic_ns(), done_ns_ = 0;
  bool done_ = false;
};

// A collective under way: one of the communicator's numbered calls.
class ShmCollective : public ShmWork {
 public:
  using ShmWork::ShmWork;

  // Makes progress without waiting. Calls finish in their order: `may_finish` says whether all earlier ones have.
  virtual void advance(bool may_finish) = 0;
  // Whether it waits for an event that does not ring the doorbell.
  virtual bool needs_polling() const { return false; }
  // Whether this rank's share of the call is done.
  bool finished() const { return finished_; }
  // Whether all ranks have done their share, after which none of them uses another's memory.
  bool is_complete() const { return is_done() || protocol_.complete(number_); }
  // Whether later calls may do their share before this one has finished.
  virtual bool may_be_overtaken() const { return finished_; }

 protected:
  std::vector<int> awaited() const override { return protocol_.unfinished(number_); }
  std::vector<int> missing() const override { return protocol_.missing(number_); }
  std::vector<int> absent() const override { return protocol_.absent(number_); }
  WaitingRank blocked() const override { return protocol_.blocked_in(number_); }
  void finish() {
    protocol_.finish(number_);
    finished_ = true;
  }

  uint64_t number_ = 0;

 private:
  bool finished_ = false;
};

}  // namespace lockstep::comm
