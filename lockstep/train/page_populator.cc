#include "lockstep/train/page_populator.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "lockstep/base/lower_priority.h"

namespace lockstep::train {
namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // of Linux 5.14
#endif

// For a kernel that has no such call. Other ranks write there meanwhile; a compare and exchange of a byte with itself
// is a write that compilers leave alone, and changes nothing.
void touch(std::span<char> pages) {
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at < pages.size(); at += kPage) {
    const std::atomic_ref byte(pages[at]);
    char now = byte.load();
    byte.compare_exchange_strong(now, now);
  }
}

void populate(const std::stop_token& stop, const std::vector<std::span<char>>& ranges) {
  constexpr size_t kPart = size_t{256} << 10;  // a fault of another thread waits for no more than this
  lower_priority();                            // a gigabyte takes some ten seconds then
  for (std::span<char> range : ranges) {
    while (!range.empty() && !stop.stop_requested()) {
      const std::span<char> part = range.first(std::min(kPart, range.size()));
      if (madvise(part.data(), part.size(), MADV_POPULATE_WRITE) != 0) {
        if (errno != EINVAL) return;
        touch(part);
      }
      range = range.subspan(part.size());
    }
  }
}

}  // namespace

PagePopulator::PagePopulator(std::vector<std::span<char>> ranges) {
  try {
    thread_ = std::jthread([ranges = std::move(ranges)](const std::stop_token& stop) { populate(stop, ranges); });
  } catch (const std::system_error&) {  // then the first save takes longer
  }
}

}  // namespace lockstep::train
