#include "lockstep/comm/shm/shm_work.h"

#include "lockstep/base/error.h"

namespace lockstep::comm {

ShmWork::ShmWork(ShmProtocol& protocol, const Call& call)
    : protocol_(protocol),
      what_(call.label()),
      timeout_(call.timeout.count() > 0 ? call.timeout : protocol.timeout()) {}

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
          .patience = std::chrono::nanoseconds(timeout_) / 10};
}

bool ShmWork::result() const {
  if (!error_.empty()) throw DesyncError(error_);
  return done_;
}

// Checks the peers and the timeout for callers that poll done().
void ShmWork::check() {
  if (done_ || !error_.empty() || !protocol_.node().check_is_due()) return;
  protocol_.node().check_peers(waiting());
  if (!done_ && elapsed() > timeout_ + grace()) fail_by_timeout();
}

void ShmWork::fail_by_timeout() const {
  throw CommError("rank ", protocol_.world_rank(protocol_.rank()), ": ", what_, ": waited ",
                  std::chrono::duration<double>(timeout_).count(), " s for ", protocol_.node().missing_text(missing()),
                  "; see their logs, or raise --timeout");
}

bool ShmWork::done() {
  if (!done_ && error_.empty()) protocol_.node().advance();
  check();
  return result();
}

bool ShmWork::wait_for(std::chrono::nanoseconds time) {
  if (!done_ && error_.empty()) protocol_.node().wait_until(waiting(), time);
  check();
  return result();
}

void ShmWork::wait() {
  if (!wait_for(timeout_ + grace())) fail_by_timeout();
}

}  // namespace lockstep::comm
