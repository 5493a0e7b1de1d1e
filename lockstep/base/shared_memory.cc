#include "lockstep/base/shared_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor create_memfd(const std::string& name, size_t bytes) {
  Descriptor fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd)
    throw IoError("shared memory ", name, ": ", errno_text(errno), "; raise the limit on open files (ulimit -n)");
  if (bytes > 0) size_memfd(fd.get(), bytes);
  return fd;
}

void size_memfd(int fd, size_t bytes) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    throw IoError("shared memory of ", human_bytes(bytes), ": ", errno_text(errno));
  }
}

Mapping::Mapping(int fd, size_t bytes, OnFork on_fork) {
  struct stat status {};
  if (fstat(fd, &status) != 0) throw IoError("shared memory, descriptor ", fd, ": ", errno_text(errno));
  const auto length = static_cast<size_t>(status.st_size);
  if (bytes == 0) bytes = length;
  if (bytes == 0 || bytes > length) {
    throw IoError("shared memory, descriptor ", fd, ": holds ", length, " bytes where ", bytes, " are expected");
  }
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) throw IoError("can't map ", human_bytes(bytes), " of shared memory: ", errno_text(errno));
  data_ = static_cast<std::byte*>(address);
  size_ = bytes;
  if (on_fork == OnFork::kLeaveOut) madvise(address, bytes, MADV_DONTFORK);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

// What is left is read after the claim was counted: whatever another rank has been promised is then either in the sum
// of the claims or no longer left.
MemoryClaim::MemoryClaim(std::atomic<uint64_t>* wanted, uint64_t bytes, const std::function<uint64_t()>& available)
    : wanted_(wanted), bytes_(bytes) {
  constexpr std::chrono::seconds kPatience{5};
  for (const Deadline deadline(kPatience);; poll(nullptr, 0, 1)) {
    const uint64_t all = wanted_ == nullptr ? bytes_ : wanted_->fetch_add(bytes_) + bytes_;
    left_ = available();
    granted_ = all <= left_ || (bytes_ <= left_ && deadline.passed());
    if (granted_) return;
    if (wanted_ != nullptr) wanted_->fetch_sub(bytes_);
    if (all == bytes_ || bytes_ > left_) return;
  }
}

MemoryClaim::~MemoryClaim() {
  if (granted_ && wanted_ != nullptr) wanted_->fetch_sub(bytes_);
}

void commit_memory(int fd, size_t offset, size_t bytes, const std::string& what, std::atomic<uint64_t>* wanted) {
  // fallocate asks the kernel for every page at once; but where memory is overcommitted it would sooner end processes
  // than refuse, so the plain question comes first.
  const MemoryClaim claim(wanted, bytes, available_memory);
  int error = claim.granted() ? 0 : ENOMEM;
  while (error == 0 && fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) error = errno;
  }
  if (error != 0) {
    throw IoError("out of memory for ", what, ": asked for ", human_bytes(bytes), ", the machine (or this cgroup) has ",
                  human_bytes(claim.left()), " left, ", errno_text(error), "; use fewer ranks or a smaller batch");
  }
}

void punch_hole(int fd, size_t offset, size_t bytes) {
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

}  // namespace lockstep
