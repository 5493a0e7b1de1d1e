#include "lockstep/comm/shm/shm_segment.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace lockstep::comm {

void ShmSegment::ring() {
  // Both sides are sequentially consistent: either this rank sees the waiter, or the waiter sees the new event.
  event.fetch_add(1);
  if (waiters.load() > 0) syscall(SYS_futex, &event, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ShmSegment::sleep(uint32_t seen, int64_t ns) {
  const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
  waiters.fetch_add(1);
  syscall(SYS_futex, &event, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  waiters.fetch_sub(1);
}

void ShmSegment::abort(int rank, std::string_view why, bool is_desync) {
  uint32_t nobody = 0;
  if (!aborted.compare_exchange_strong(nobody, UINT32_MAX)) return;
  reason.set(why);
  desync.store(is_desync);
  aborted.store(1 + static_cast<uint32_t>(rank));
  event.fetch_add(1);
  syscall(SYS_futex, &event, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lockstep::comm
