// The pool: this process's CPU memory for tensors, in a memfd that the other ranks of the node map as well.
//
// It replaces libtorch's CPU allocator, so every rank can read a gradient where autograd writes it. The pool keeps
// freed blocks, where glibc would give large ones back to the kernel and fault them in again at every step. It gives
// memory back, by punching holes, when it holds more than the high-water mark of use plus 20 % (at least 16 MiB). The
// kAlignment bytes before each block's data identify the block, for libtorch's oneDNN frees by bare address.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "lockstep/base/shared_memory.h"
#include "lockstep/comm/memory/block_heap.h"

namespace lockstep::comm {

class Pool final : public c10::Allocator {
 public:
  struct Options {
    size_t granule = size_t{1} << 20;                    // the bytes of memory that back small blocks at a time
    std::shared_ptr<std::atomic<uint64_t>> wanted = {};  // see MemoryClaim
  };

  struct Stats {
    size_t in_use = 0;  // bytes in live blocks
    size_t peak = 0;    // its high-water mark
    size_t held = 0;    // bytes of memory behind the pool: at most peak plus a fifth or 16 MiB, plus a granule
    uint64_t allocations = 0;
    uint64_t holes = 0;  // how often memory was given back
  };

  // Maps `memfd`, which holds zeros and whose size is the pool's capacity. Throws IoError.
  Pool(Descriptor memfd, Options options);
  explicit Pool(Descriptor memfd) : Pool(std::move(memfd), Options{}) {}
  ~Pool() override;

  // Any thread. Throws IoError that says how much was asked for and how much is left, if the machine has too little.
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return this == installed_ ? &Pool::release_any : &Pool::release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Makes the pool libtorch's CPU allocator for the rest of the process. The process owns the pool from then on. Blocks
  // of the former allocator still go back to it, and it serves forked children, which don't have the pool's memory.
  // Throws BugError where a pool is installed already. One thread, while no other allocates.
  static Pool* install(std::unique_ptr<Pool> pool);

  // The offset of [data, data + bytes) in the pool; nothing unless all of the range is in the pool.
  std::optional<size_t> offset_of(const void* data, size_t bytes) const;

  const Mapping& mapping() const { return mapping_; }
  Stats stats() const;

 private:
  static void release(void* block);
  static void release_any(void* data);  // of the installed pool or of its predecessor
  void leave_to_former();
  BlockHeap::Block* take(size_t bytes);
  void back(BlockHeap::Block* block);
  [[noreturn]] void throw_exhausted(size_t bytes) const;
  void trim(size_t wanted);
  size_t give_back(size_t bound);
  size_t held_bytes() const;

  inline static Pool* installed_ = nullptr;  // of this process

  Options options_;
  c10::Allocator* former_ = nullptr;  // of the installed pool
  bool in_child_ = false;             // whether this process is a forked child of the pool's
  Descriptor memfd_;
  Mapping mapping_;
  mutable std::mutex mutex_;
  BlockHeap heap_;
  Stats stats_;
};

}  // namespace lockstep::comm
