#include "lockstep/comm/network/network_work.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"

namespace lockstep::comm {

using std::chrono::nanoseconds;

NetworkWork::NetworkWork(std::string label, nanoseconds timeout, Hooks hooks)
    : label_(std::move(label)), timeout_(timeout), hooks_(std::move(hooks)), began_ns_(monotonic_ns()) {}

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

void NetworkWork::wait_for_end() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_; });
}

bool NetworkWork::done() {
  if (hooks_.progress) hooks_.progress();
  return wait_for(nanoseconds(0));
}

bool NetworkWork::wait_for(nanoseconds time) {
  constexpr nanoseconds kReminder = std::chrono::milliseconds(200), kProgress = std::chrono::milliseconds(1);
  const Deadline deadline(time);
  Deadline reminder(kReminder);
  std::unique_lock lock(mutex_);
  while (!done_ && !deadline.passed()) {
    const nanoseconds interval = std::min(hooks_.progress ? kProgress : kReminder, deadline.left());
    if (ended_.wait_for(lock, interval, [&] { return done_; })) break;
    lock.unlock();
    if (hooks_.progress) hooks_.progress();
    if (hooks_.remind && reminder.passed()) {
      hooks_.remind();
      reminder = Deadline(kReminder);
    }
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
  return done_;
}

void NetworkWork::wait() {
  // The thread ends by itself at the call's end, and needs a moment after it to find out the reason.
  constexpr nanoseconds kGrace = std::chrono::seconds(15);
  const std::shared_ptr<void> blocked = hooks_.block ? hooks_.block() : nullptr;
  const auto left = [&] { return kGrace + (hooks_.left ? hooks_.left() : timeout_ - elapsed()); };
  for (nanoseconds time = timeout_ + kGrace; !wait_for(time); time = left()) {
    if (left().count() <= 0) throw CommError(label_, ": the network library does not come back");
  }
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
