#include "lockstep/parallel/lane_turns.h"

#include <ATen/ThreadLocalState.h>
#include <c10/core/AutogradState.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/parallel/thread_device.h"

namespace lockstep::parallel {
namespace {

// Thrown within a lane to end it after another lane has failed. It never leaves run().
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "another lane has failed"; }
};

}  // namespace

LaneTurns::~LaneTurns() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void LaneTurns::start_threads(size_t lanes) {
  const SigpipeBlocked blocked;
  while (threads_.size() < lanes) threads_.emplace_back([this, lane = threads_.size()] { work(lane); });
}

void LaneTurns::run(size_t lanes, const std::function<void(size_t)>& lane, const OnSwitch& on_switch) {
  const at::ThreadLocalState settings;
  const ThreadDevice device;
  if (lanes > 1) start_threads(lanes);
  std::unique_lock lock(mutex_);
  lane_ = [&](size_t i) {
    const at::ThreadLocalStateGuard guard(settings);
    // A lane that waits within its backward must not hold a thread that another lane's backward needs, as autograd's
    // one thread for a GPU.
    if (lanes > 1) {
      c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
      device.set();
    }
    lane(i);
  };
  on_switch_ = on_switch;
  lanes_ = lanes;
  ended_.assign(lanes, false);
  error_ = nullptr;
  switch_turn(kNone, 0);
  if (lanes == 1) {
    lock.unlock();
    run_current();
    lock.lock();
  } else {
    changed_.notify_all();
    changed_.wait(lock, [&] { return next_after(0) == kNone; });
  }
  lanes_ = 0;
  current_ = kNone;
  lane_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

void LaneTurns::work(size_t lane) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || (current_ == lane && lanes_ > lane); });
      if (closing_) return;
    }
    run_current();
  }
}

// Runs the lane whose turn it is from its beginning to its end.
void LaneTurns::run_current() {
  std::exception_ptr error = error_;
  if (error == nullptr) {
    try {
      lane_(current_);
    } catch (const Cancelled&) {
    } catch (...) {
      error = std::current_exception();
    }
  }
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr) error_ = error;
  const size_t self = current_;
  ended_[self] = true;
  switch_turn(self, next_after(self));
  changed_.notify_all();
}

// If the caller's on_switch throws, the lanes end one after the other.
void LaneTurns::switch_turn(size_t from, size_t to) {
  try {
    on_switch_(from, to);
  } catch (...) {
    if (error_ == nullptr) error_ = std::current_exception();
  }
  current_ = to;
}

// The next lane that has not ended; the first lane follows the last.
size_t LaneTurns::next_after(size_t lane) const {
  for (size_t i = 1; i <= lanes_; ++i) {
    if (!ended_[(lane + i) % lanes_]) return (lane + i) % lanes_;
  }
  return kNone;
}

void LaneTurns::pass_turn() {
  std::unique_lock lock(mutex_);
  const size_t self = current_;
  switch_turn(self, next_after(self));
  changed_.notify_all();
  changed_.wait(lock, [&] { return current_ == self; });
}

void LaneTurns::meet(const std::function<void()>& when_all) {
  if (lanes_ <= 1) return when_all();
  const uint64_t before = exchanges_;
  const bool all_go_on = std::find(ended_.begin(), ended_.end(), true) == ended_.end();
  if (current_ + 1 == lanes_ && all_go_on) {
    when_all();
    ++exchanges_;
  }
  if (all_go_on) pass_turn();
  if (error_ != nullptr) throw Cancelled();
  if (exchanges_ == before) {
    throw ConfigError("the lanes of a step do not use the same SyncBatchNorm layers: lane ", current_, " of this rank ",
                      "waits in one that another has left out; use plain BatchNorm there");
  }
}

}  // namespace lockstep::parallel
