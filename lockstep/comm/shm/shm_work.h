// A call under way over shared memory: what all kinds have in common.
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
  ShmWork(ShmProtocol& protocol, const Call& call);

  bool done() final;
  bool wait_for(std::chrono::nanoseconds time) final;
  void wait() final;
  std::chrono::nanoseconds elapsed() const final;

  bool is_done() const { return done_; }

 protected:
  // The places of the ranks that it waits for, and of those of them that keep everyone waiting now; none of the latter
  // if it waits for other nodes.
  virtual std::vector<int> awaited() const = 0;
  virtual std::vector<int> missing() const = 0;
  // How much longer than its timeout it waits.
  virtual std::chrono::nanoseconds grace() const { return std::chrono::nanoseconds(0); }
  void mark_done();
  // Ends it with a DesyncError for whoever waits.
  void fail(std::string error) { error_ = std::move(error); }

  ShmProtocol& protocol_;

 private:
  ShmNode::Waiting waiting() const;
  void check();
  [[noreturn]] void fail_by_timeout() const;
  bool result() const;

  std::string what_;
  std::string error_;
  std::chrono::milliseconds timeout_;
  int64_t begun_ns_ = monotonic_ns(), done_ns_ = 0;
  bool done_ = false;
};

// A collective: one of the communicator's numbered calls.
class ShmCollective : public ShmWork {
 public:
  using ShmWork::ShmWork;

  // Moves it on as far as that goes without waiting. Calls finish in their order: `may_finish` says whether all before
  // this one have.
  virtual void advance(bool may_finish) = 0;
  virtual bool needs_polling() const { return false; }  // waits for something that does not ring the bell
  bool finished() const { return finished_; }           // this rank's share is done
  // Whether the calls after it may do their share.
  virtual bool may_be_overtaken() const { return finished_; }

 protected:
  std::vector<int> awaited() const override { return protocol_.unfinished(number_); }
  std::vector<int> missing() const override { return protocol_.missing(number_); }
  void finish() {
    protocol_.finish(number_);
    finished_ = true;
  }

  uint64_t number_ = 0;

 private:
  bool finished_ = false;
};

}  // namespace lockstep::comm
