// Memory that several processes map: a memfd, whose descriptor they pass to each other. It has no name in the file
// system, so nothing is left behind when processes die, and the size of /dev/shm does not limit it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// A rank's claim on memory that it is about to ask the system for. Ranks that ask at once count each other's claims, so
// that none takes memory that another was promised.
class MemoryClaim {
 public:
  // Claims `bytes` of what `available` says is left. `wanted`, the sum of all ranks' claims, is in memory that the
  // ranks share, and outlives this; nullptr: nobody else asks. Where too little is left beside the others' claims, it
  // waits for these to end, but for seconds at most: a claim that lasts longer is that of a rank that died or was
  // stopped.
  MemoryClaim(std::atomic<uint64_t>* wanted, uint64_t bytes, const std::function<uint64_t()>& available);
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

  bool granted() const { return granted_; }
  // What was left when it was decided.
  uint64_t left() const { return left_; }

 private:
  std::atomic<uint64_t>* wanted_;
  uint64_t bytes_, left_ = 0;
  bool granted_ = false;
};

// Backs [offset, offset + bytes) of the memfd with memory now, so that a later access can't raise SIGBUS. `wanted` as
// in MemoryClaim. Throws IoError that says how much was asked for `what` and how much the machine had left.
void commit_memory(int fd, size_t offset, size_t bytes, const std::string& what,
                   std::atomic<uint64_t>* wanted = nullptr);

// Gives the memory behind [offset, offset + bytes) back to the system. The range, which is page-aligned, reads as zeros
// afterwards.
void punch_hole(int fd, size_t offset, size_t bytes);

}  // namespace lockstep
