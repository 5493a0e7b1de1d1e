#include "lockstep/checkpoint/files/page_cache.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::checkpoint {
namespace {

// Also of files for which the system doesn't tell.
bool may_be_there(int fd, uint64_t offset) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  void* const at = mmap(nullptr, page, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset / page * page));
  if (at == MAP_FAILED) return true;
  unsigned char there = 1;
  const bool told = mincore(at, page, &there) == 0;
  munmap(at, page);
  return !told || (there & 1) != 0;
}

}  // namespace

bool is_in_page_cache(int fd, uint64_t offset) {
  if (!may_be_there(fd, offset)) return false;
  char byte = 0;
  const iovec to{&byte, 1};
  return preadv2(fd, &to, 1, static_cast<off_t>(offset), RWF_NOWAIT) >= 0 || errno != EAGAIN;
}

}  // namespace lockstep::checkpoint
