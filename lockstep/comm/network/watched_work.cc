#include "lockstep/comm/network/watched_work.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {

WatchedWork::WatchedWork(std::shared_ptr<Work> work, std::shared_ptr<Watch> watch, WatchedCall call, TellNode tell_node)
    : work_(std::move(work)), watch_(std::move(watch)), call_(std::move(call)), tell_node_(std::move(tell_node)) {}

WatchedWork::~WatchedWork() {
  if (wait_ != 0) watch_->leave(wait_);
}

uint64_t WatchedWork::waiting() {
  if (wait_ == 0) wait_ = watch_->enter(call_);
  return wait_;
}

// An error on this node, or a broken connection, is often only the consequence of another rank's error. The node's
// other ranks would take this rank's end for the cause, if they did not learn first why it leaves.
void WatchedWork::fail(std::exception_ptr why) {
  try {
    std::rethrow_exception(watch_->explain(waiting(), std::move(why)));
  } catch (const DesyncError& error) {
    tell_node_(error.what());
    throw;
  }
}

bool WatchedWork::done() {
  try {
    return work_->done();
  } catch (...) {
    fail(std::current_exception());
  }
}

bool WatchedWork::wait_for(std::chrono::nanoseconds time) {
  constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(200);
  const Deadline deadline(time);
  try {
    while (!work_->wait_for(std::clamp(deadline.left(), std::chrono::nanoseconds(0), kLook))) {
      if (deadline.passed()) return false;
      watch_->warn_if_late(waiting());
      if (const auto verdict = watch_->verdict()) std::rethrow_exception(verdict);
    }
    return true;
  } catch (...) {
    fail(std::current_exception());
  }
}

void WatchedWork::wait() {
  // The messages of its parts have the same timeout and began a little later. They know whom they wait for, and so go
  // first; as long as they go on, so does this call.
  constexpr std::chrono::nanoseconds kGrace = std::chrono::seconds(1);
  const std::shared_ptr<void> blocked = watch_->block(call_);
  for (auto time = call_.timeout + kGrace; time.count() > 0; time = watch_->longest_left() + kGrace) {
    if (wait_for(time)) return;
  }
  std::rethrow_exception(watch_->explain(waiting(), MeshError(MeshError::Cause::kTimeout, {}, "timed out")));
}

}  // namespace lockstep::comm
