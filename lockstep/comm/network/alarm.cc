#include "lockstep/comm/network/alarm.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/sigpipe.h"

namespace lockstep::comm {

using std::chrono::nanoseconds;

Alarm::~Alarm() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    news_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<void> Alarm::set(const Patience& patience, std::function<void()> ring) {
  const int64_t end_ns = monotonic_ns() + patience.left().count();
  const std::lock_guard lock(mutex_);
  const uint64_t number = next_++;
  waiters_.emplace(number, Waiter{&patience, std::move(ring)});
  if (!thread_.joinable()) {
    const SigpipeBlocked blocked;
    thread_ = std::thread([this] { run(); });
  } else if (end_ns < wakes_ns_) {
    news_.notify_all();
  }
  return {nullptr, [this, number](void*) {
            const std::lock_guard at_end(mutex_);
            waiters_.erase(number);
          }};
}

// The ends of later waits are later as a rule, so the thread sleeps for about a timeout at a time.
void Alarm::run() {
  constexpr nanoseconds kAgain = std::chrono::milliseconds(50), kLongest = std::chrono::hours(1);
  std::unique_lock lock(mutex_);
  while (!ending_) {
    nanoseconds sleep = kLongest;
    for (const auto& [number, waiter] : waiters_) {
      nanoseconds left = waiter.patience->left();
      if (left.count() <= 0) {
        waiter.ring();
        left = kAgain;
      }
      sleep = std::min(sleep, left);
    }
    wakes_ns_ = monotonic_ns() + sleep.count();
    news_.wait_for(lock, sleep);
  }
}

}  // namespace lockstep::comm
