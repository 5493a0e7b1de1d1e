#include "lockstep/comm/network/short_calls.h"

#include <unistd.h>

#include <chrono>

#include "lockstep/base/process_state.h"
#include "lockstep/base/sigpipe.h"

namespace lockstep::comm {

ShortCalls::~ShortCalls() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    news_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

ShortCalls::Call::Call(ShortCalls& all, int peer) : all_(all) {
  static thread_local const pid_t thread = gettid();
  const std::lock_guard lock(all_.mutex_);
  number_ = all_.next_++;
  all_.calls_.emplace(number_, UnderWay{.thread = thread, .peer = peer});
  if (all_.thread_.joinable()) return;
  const SigpipeBlocked blocked;
  all_.thread_ = std::thread([&all] { all.run(); });
}

ShortCalls::Call::~Call() {
  const std::lock_guard lock(all_.mutex_);
  all_.calls_.erase(number_);
}

void ShortCalls::run() {
  constexpr std::chrono::milliseconds kBetweenLooks{100};
  constexpr int kNeverReturns = 30;  // looks
  std::unique_lock lock(mutex_);
  while (!news_.wait_for(lock, kBetweenLooks, [&] { return ending_; })) {
    if (calls_.empty()) continue;
    // A thread that is stopped, or waits for a disk, may be the one that the calls wait for.
    const bool may_be_held = has_thread_in(getpid(), "DTt");
    for (auto& [number, call] : calls_) {
      call.asleep = !may_be_held && process_state(call.thread) == 'S' ? call.asleep + 1 : 0;
      if (call.asleep == kNeverReturns) stuck_(call.peer);
    }
  }
}

}  // namespace lockstep::comm
