// A call whose output is copied to the caller's tensor at its end.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <utility>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

// Copies `from` to `to` when done(), wait_for() or wait() first sees that `work` is done.
class CopiedOut final : public Work {
 public:
  CopiedOut(std::shared_ptr<Work> work, at::Tensor from, at::Tensor to)
      : work_(std::move(work)), from_(std::move(from)), to_(std::move(to)) {}

  bool done() override { return copy_out_if(work_->done()); }
  bool wait_for(std::chrono::nanoseconds time) override { return copy_out_if(work_->wait_for(time)); }
  void wait() override {
    work_->wait();
    copy_out_if(true);
  }
  std::chrono::nanoseconds elapsed() const override { return work_->elapsed(); }

 private:
  bool copy_out_if(bool done) {
    if (done && to_.defined()) std::exchange(to_, at::Tensor()).copy_(from_);
    return done;
  }

  std::shared_ptr<Work> work_;
  at::Tensor from_, to_;
};

}  // namespace lockstep::comm
