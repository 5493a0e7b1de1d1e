// Memory that several processes map: a memfd, whose descriptor they pass to each other. It has no name in the file
// system, so nothing is left behind when processes die, and the size of /dev/shm does not limit it.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

// An owned file descriptor, closed by the destructor. -1 stands for none.
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

// Creates a memfd of `bytes` zeros, none of them backed by memory yet. It is sealed against shrinking, so that a peer
// that maps it never meets SIGBUS, and is not inherited by exec. /proc shows `name`. Throws IoError.
Descriptor create_memfd(const std::string& name, size_t bytes);

// Sets the size of a memfd that has none yet, and seals it. Throws IoError.
void size_memfd(int fd, size_t bytes);

// A shared, writable mapping of a memfd, unmapped by the destructor.
class Mapping {
 public:
  // Whether a forked child keeps the mapping.
  enum class OnFork { kKeep, kLeaveOut };

  Mapping() = default;
  // Maps the first `bytes` of `fd`; 0 maps the whole file. Throws IoError if the file is shorter or can't be mapped.
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

// Backs [offset, offset + bytes) of the memfd with memory now, so that a later access can't raise SIGBUS. Throws
// IoError that says how much was asked for `what` and how much the machine had left.
void commit_memory(int fd, size_t offset, size_t bytes, const std::string& what);

// Gives the memory behind [offset, offset + bytes) back to the system. The range, which is page-aligned, reads as zeros
// afterwards.
void punch_hole(int fd, size_t offset, size_t bytes);

}  // namespace lockstep
