#include "lockstep/parallel/replicas/replica_threads.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/AutogradState.h>

#include <algorithm>

#include "lockstep/base/sigpipe.h"

namespace lockstep::parallel {
namespace {

thread_local size_t t_current = 0;

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ReplicaCancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

size_t ReplicaThreads::current() { return t_current; }

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ReplicaThreads::run(size_t count, const std::function<void(size_t)>& work, const std::function<void()>& failed) {
  const at::ThreadLocalState settings;
  const int own_threads = at::get_num_threads();
  const int threads = std::max(1, own_threads / static_cast<int>(count));
  std::unique_lock lock(mutex_);
  {
    const SigpipeBlocked blocked;
    while (threads_.size() < count) threads_.emplace_back([this, number = threads_.size()] { loop(number); });
  }
  work_ = [&](size_t number) {
    const at::ThreadLocalStateGuard guard(settings);
    // Each replica's backward runs on its own thread, not on autograd's one for a device.
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    try {
      work(number);
    } catch (...) {
      if (failed) failed();
      throw;
    }
  };
  count_ = count;
  ended_ = 0;
  errors_.assign(count, nullptr);
  ++runs_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return ended_ == count_; });
  count_ = 0;
  work_ = nullptr;
  // libtorch gives threads that begin later the number that was set last in the process.
  if (own_threads != threads) at::set_num_threads(own_threads);
  std::exception_ptr first;
  for (const auto& error : errors_) {
    if (error != nullptr && (first == nullptr || (is_cancelled(first) && !is_cancelled(error)))) first = error;
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void ReplicaThreads::loop(size_t number) {
  t_current = number;
  uint64_t done = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || (runs_ > done && number < count_); });
    if (closing_) return;
    done = runs_;
    std::exception_ptr error;
    lock.unlock();
    try {
      work_(number);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    errors_[number] = error;
    if (++ended_ == count_) changed_.notify_all();
  }
}

}  // namespace lockstep::parallel
