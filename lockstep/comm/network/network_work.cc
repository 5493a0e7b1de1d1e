#include "lockstep/comm/network/network_work.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"

namespace lockstep::comm {

using std::chrono::nanoseconds;

NetworkWork::NetworkWork(std::string label, nanoseconds timeout, std::function<void()> on_wait)
    : label_(std::move(label)), timeout_(timeout), on_wait_(std::move(on_wait)), began_ns_(monotonic_ns()) {}

void NetworkWork::finish(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  done_ = true;
  error_ = std::move(error);
  ended_ns_ = monotonic_ns();
  ended_.notify_all();
}

bool NetworkWork::ended() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool NetworkWork::wait_for(nanoseconds time) {
  constexpr nanoseconds kInterval = std::chrono::milliseconds(200);
  const Deadline deadline(time);
  std::unique_lock lock(mutex_);
  while (!done_ && !deadline.passed()) {
    if (ended_.wait_for(lock, std::min(kInterval, deadline.left()), [&] { return done_; })) break;
    lock.unlock();
    on_wait_();
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
  return done_;
}

void NetworkWork::wait() {
  // The thread has the same timeout, and needs a moment after it to find out the reason.
  constexpr std::chrono::seconds kGrace{15};
  if (!wait_for(timeout_ + kGrace)) throw CommError(label_, ": the network library does not come back");
}

nanoseconds NetworkWork::elapsed() const {
  const std::lock_guard lock(mutex_);
  return nanoseconds((done_ ? ended_ns_ : monotonic_ns()) - began_ns_);
}

SerialThread::~SerialThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    news_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void SerialThread::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) {
    const SigpipeBlocked blocked;
    thread_ = std::thread([this] { run(); });
  }
  news_.notify_one();
}

void SerialThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    news_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace lockstep::comm
