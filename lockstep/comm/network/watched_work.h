// A collective of a world of several nodes, which go over shared memory, the network or both: whoever waits long for
// one says in the watch which it is, so that ranks which call different things learn it wherever they wait.
#pragma once

#include <chrono>
#include <exception>
#include <memory>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/network/watch.h"

namespace lockstep::comm {

class WatchedWork final : public Work {
 public:
  // `call` is numbered among all calls of its group, which the watch knows of.
  WatchedWork(std::shared_ptr<Work> work, std::shared_ptr<Watch> watch, WatchedCall call);
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
  uint64_t wait_ = 0;  // 0: none yet
};

}  // namespace lockstep::comm
