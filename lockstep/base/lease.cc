#include "lockstep/base/lease.h"

#include <chrono>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/run_main.h"
#include "lockstep/base/signals_blocked.h"

namespace lockstep {
namespace {

std::atomic<const std::atomic<int64_t>*> lease = nullptr;

bool has_ended() {
  const std::atomic<int64_t>* const until_ns = lease.load();
  const int64_t end = until_ns == nullptr ? 0 : until_ns->load();
  return end != 0 && boot_ns() >= end;
}

}  // namespace

void act_by_lease(const std::atomic<int64_t>* until_ns) { lease.store(until_ns); }

void end_with_lease() {
  static const bool started = [] {
    const SignalsBlocked meanwhile;
    std::thread([] {
      constexpr std::chrono::milliseconds kLook{100};
      for (;; std::this_thread::sleep_for(kLook)) {
        if (has_ended()) {
          end_process(CommError("this node's launcher has lost its lease, and others go on with the run in its place"));
        }
      }
    }).detach();
    return true;
  }();
  static_cast<void>(started);
}

void check_lease(const std::string& path) {
  if (!has_ended()) return;
  throw IoError(path, ": not replaced, for this node's launcher has lost its lease and others go on with the run");
}

}  // namespace lockstep
