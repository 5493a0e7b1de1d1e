#include "lockstep/base/lease.h"

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

std::atomic<const std::atomic<int64_t>*> lease = nullptr;

}  // namespace

void act_by_lease(const std::atomic<int64_t>* until_ns) { lease.store(until_ns); }

void check_lease(const std::string& path) {
  const std::atomic<int64_t>* const until_ns = lease.load();
  const int64_t end = until_ns == nullptr ? 0 : until_ns->load();
  if (end == 0 || monotonic_ns() < end) return;
  throw IoError(path, ": not replaced, for this node's launcher has lost its lease and others go on with the run");
}

}  // namespace lockstep
