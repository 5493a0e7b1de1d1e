// The pool: this process's CPU memory for tensors, in a memfd that the other ranks of the node map as well.
//
// It takes the place of libtorch's CPU allocator, so a gradient is born where every rank can read it. Freed blocks are
// kept (glibc would give large ones back to the kernel and fault them in again at every step); what is kept beyond the
// high-water mark of use plus 20 % (at least 16 MiB) is given back by punching holes. Before each block's data stand
// kAlignment bytes that say which block it is: libtorch's oneDNN gives back bare addresses.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "lockstep/base/shared_memory.h"
#include "lockstep/comm/memory/block_heap.h"

namespace lockstep::comm {

class Pool final : public c10::Allocator {
 public:
  struct Options {
    size_t granule = size_t{1} << 20;  // small blocks are backed with memory by so much at a time
  };

  struct Stats {
    size_t in_use = 0;  // bytes in live blocks
    size_t peak = 0;    // its high-water mark
    size_t held = 0;    // bytes of memory behind the pool: at most peak plus a fifth or 16 MiB, and a granule
    uint64_t allocations = 0;
    uint64_t holes = 0;  // times that memory was given back
  };

  // Maps `memfd`, all zeros; its size is the pool's capacity. Throws IoError.
  Pool(Descriptor memfd, Options options);
  explicit Pool(Descriptor memfd) : Pool(std::move(memfd), Options{}) {}
  ~Pool() override;

  // Any thread. Throws IoError if the machine has no memory left, with what was asked and what there is.
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return &Pool::release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // Makes this libtorch's CPU allocator for the rest of the process, which owns the pool from then on.
  static Pool* install(std::unique_ptr<Pool> pool);

  // Where in the pool [data, data + bytes) begins; nothing if it is not all in it.
  std::optional<size_t> offset_of(const void* data, size_t bytes) const;

  const Mapping& mapping() const { return mapping_; }
  Stats stats() const;

 private:
  static void release(void* block);
  BlockHeap::Block* take(size_t bytes);
  void back(BlockHeap::Block* block);
  [[noreturn]] void throw_exhausted(size_t bytes) const;
  void trim(size_t wanted);
  size_t give_back(size_t bound);
  size_t held_bytes() const;

  Options options_;
  Descriptor memfd_;
  Mapping mapping_;
  mutable std::mutex mutex_;
  BlockHeap heap_;
  Stats stats_;
};

}  // namespace lockstep::comm
