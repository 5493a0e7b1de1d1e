// Memory that several processes map: a memfd, passed on as a descriptor. It has no name, so nothing is left to clean
// up when processes die, and it does not depend on the size of /dev/shm.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

// A file descriptor that is closed with its owner. -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A new memfd of `bytes`, all zero and none of it backed by memory yet; sealed against shrinking (a peer that maps it
// must never meet SIGBUS) and not inherited by exec. `name` is what /proc shows. Throws IoError.
Descriptor create_memfd(const std::string& name, size_t bytes);

// Sets the size of a memfd that has none yet, and seals it. Throws IoError.
void size_memfd(int fd, size_t bytes);

// A shared, writable mapping of a memfd, unmapped with its owner.
class Mapping {
 public:
  enum class OnFork { kKeep, kLeaveOut };

  Mapping() = default;
  // Maps `bytes` of `fd` from its start (0: the whole file). Throws IoError if it can't or the file is shorter.
  explicit Mapping(int fd, size_t bytes = 0, OnFork on_fork = OnFork::kKeep);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  template <typename T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(data_ + offset);
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Backs [offset, offset + bytes) of the memfd with memory now, so that touching it later can't end in SIGBUS.
// Throws IoError that says how much was asked for `what` and how much the machine had left.
void commit_memory(int fd, size_t offset, size_t bytes, const std::string& what);

// Gives the memory behind [offset, offset + bytes) back to the system; it reads as zeros afterwards. Page-aligned.
void punch_hole(int fd, size_t offset, size_t bytes);

}  // namespace lockstep
