// A collective of a world of several nodes, which uses shared memory, the network or both. A rank that waits long for
// it enters the wait in the watch, so that ranks whose calls differ learn it whatever they wait on.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/network/watch.h"

namespace lockstep::comm {

class WatchedWork final : public Work {
 public:
  // `call` is numbered among all calls of its group, which has been announced to the watch. `tell_node` gets the text
  // of the DesyncError with which the call ends, before this rank leaves it.
  using TellNode = std::function<void(const std::string& difference)>;
  WatchedWork(std::shared_ptr<Work> work, std::shared_ptr<Watch> watch, WatchedCall call, TellNode tell_node);
  ~WatchedWork() override;
  WatchedWork(const WatchedWork&) = delete;
  WatchedWork& operator=(const WatchedWork&) = delete;

  bool done() override;
  bool wait_for(std::chrono::nanoseconds time) override;
  void wait() override;
  std::chrono::nanoseconds elapsed() const override { return work_->elapsed(); }

 private:
  uint64_t waiting();
  [[noreturn]] void fail(std::exception_ptr why);

  std::shared_ptr<Work> work_;
  std::shared_ptr<Watch> watch_;
  WatchedCall call_;
  TellNode tell_node_;
  uint64_t wait_ = 0;  // the watch's number of the wait; 0: not entered yet
};

}  // namespace lockstep::comm
