#include "lockstep/checkpoint/files/stream_copy.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "lockstep/checkpoint/files/crc32.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kLine = 64;      // bytes that a store past the caches should fill together
constexpr size_t kBlock = 32768;  // bytes that are summed at a time: they fit in a near cache

using Vector = uint64_t __attribute__((vector_size(16)));

void stream_line(char* to, const char* from) {
  Vector values[kLine / sizeof(Vector)];
  std::memcpy(values, from, kLine);
  auto* const out = reinterpret_cast<Vector*>(to);
  for (size_t i = 0; i < kLine / sizeof(Vector); ++i) __builtin_nontemporal_store(values[i], out + i);
}

// Such stores are not ordered with others, not even on x86.
void order_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Meanwhile it calls for what lies `ahead` bytes further on, if that is not 0: a sum waits for memory otherwise, which
// has nothing else to do then. Such a call has no effect behind the end.
void copy_lines(char* to, const char* from, size_t bytes, size_t ahead) {
  const size_t to_line = (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine;
  const size_t head = std::min(bytes, to_line);
  if (head > 0) std::memcpy(to, from, head);
  size_t at = head;
  for (; bytes - at >= kLine; at += kLine) {
    if (ahead != 0) __builtin_prefetch(from + at + ahead);
    stream_line(to + at, from + at);
  }
  if (at < bytes) std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace

void stream_copy(char* to, const char* from, size_t bytes) {
  copy_lines(to, from, bytes, /*ahead=*/0);
  order_stores();
}

// A block is summed, which brings it into the caches, and copied from there.
uint32_t stream_copy_summed(char* to, const char* from, size_t bytes, uint32_t before) {
  uint32_t crc = before;
  for (size_t at = 0; at < bytes; at += kBlock) {
    const size_t block = std::min(kBlock, bytes - at);
    crc = crc32({from + at, block}, crc);
    copy_lines(to + at, from + at, block, kBlock);
  }
  order_stores();
  return crc;
}

}  // namespace lockstep::checkpoint
