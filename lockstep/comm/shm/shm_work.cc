#include "lockstep/comm/shm/shm_work.h"

#include "lockstep/base/error.h"

namespace lockstep::comm {

ShmWork::ShmWork(ShmProtocol& protocol, const Call& call, std::string what)
    : protocol_(protocol),
      what_(std::move(what)),
      timeout_(call.timeout.count() > 0 ? call.timeout : protocol.timeout()),
      begun_running_ns_(protocol.node().running_ns()) {}

void ShmWork::mark_done() {
  done_ = true;
  done_ns_ = monotonic_ns();
}

std::chrono::nanoseconds ShmWork::elapsed() const {
  return std::chrono::nanoseconds((done_ ? done_ns_ : monotonic_ns()) - begun_ns_);
}

ShmNode::Waiting ShmWork::waiting() const {
  return {.what = what_,
          .ready = [this] { return done_ || !error_.empty(); },
          .awaited = [this] { return awaited(); },
          .missing = [this] { return missing(); },
          .timeout = timeout_,
          .grace = grace(),
          .absent = [this] { return absent(); }};
}

bool ShmWork::result() const {
  if (!error_.empty()) throw DesyncError(error_);
  return done_;
}

// Checks the peers and the timeout for callers that poll done().
void ShmWork::check() {
  ShmNode& node = protocol_.node();
  if (done_ || !error_.empty() || !node.check_is_due()) return;
  node.check_peers(waiting());
  if (!done_ && !node.goes_on(waiting(), begun_running_ns_)) {
    throw node.timed_out(waiting());
  }
}

bool ShmWork::done() {
  if (!done_ && error_.empty()) protocol_.node().advance();
  check();
  return result();
}

bool ShmWork::wait_until(const ShmNode::Waiting& waiting, std::chrono::nanoseconds time) {
  if (!done_ && error_.empty()) protocol_.node().wait_until(waiting, time);
  check();
  return result();
}

bool ShmWork::wait_for(std::chrono::nanoseconds time) { return wait_until(waiting(), time); }

void ShmWork::wait() {
  ShmNode::Waiting wait = waiting();
  wait.blocked = [this] { return blocked(); };
  const int64_t began_ns = protocol_.node().running_ns();
  for (auto time = timeout_ + grace(); !wait_until(wait, time); time = timeout_ / 10) {
    if (!protocol_.node().goes_on(wait, began_ns)) throw protocol_.node().timed_out(wait);
  }
}

}  // namespace lockstep::comm
