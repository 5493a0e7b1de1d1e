#include "lockstep/comm/memory/pool.h"

#include <c10/core/CPUAllocator.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

constexpr size_t kPage = 4096;
// The bytes that may be held beyond the peak in use: a fifth of it, and at least so much that a small network, whose
// blocks never fit into each other's gaps exactly, does not give memory back and take it again at every step.
constexpr double kSlackShare = 0.2;
constexpr size_t kLeastSlack = size_t{16} << 20;

size_t page_up(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

Pool::Pool(Descriptor memfd, Options options)
    : options_{page_up(options.granule), std::move(options.wanted)},
      memfd_(std::move(memfd)),
      mapping_(memfd_.get(), 0, Mapping::OnFork::kLeaveOut),
      heap_(mapping_.size()) {}

Pool::~Pool() = default;

Pool* Pool::install(std::unique_ptr<Pool> pool) {
  if (installed_ != nullptr) throw BugError("a second pool can't take the place of the first");
  pool->former_ = c10::GetCPUAllocator();
  installed_ = pool.release();
  pthread_atfork(nullptr, nullptr, [] { installed_->leave_to_former(); });
  c10::SetCPUAllocator(installed_, /*priority=*/1);
  return installed_;
}

// In a forked child the pool's memory is left out, and another thread of the parent may have held the lock. The former
// allocator makes the child's blocks, and those of the parent are never freed. Nothing else may be mapped where the
// pool was, for addresses tell whose a block is.
void Pool::leave_to_former() {
  in_child_ = true;
  mmap(mapping_.data(), mapping_.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

c10::DataPtr Pool::allocate(size_t bytes) {
  if (in_child_) return former_->allocate(bytes);
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, raw_deleter(), cpu};
  if (bytes > mapping_.size()) throw_exhausted(bytes);
  const std::lock_guard lock(mutex_);
  BlockHeap::Block* block = take(bytes + BlockHeap::kAlignment);
  stats_.in_use += block->size;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  ++stats_.allocations;
  block->owner = this;
  std::byte* header = mapping_.data() + block->offset;
  std::memcpy(header, &block, sizeof block);
  void* data = header + BlockHeap::kAlignment;
  return {data, data, raw_deleter(), cpu};
}

// oneDNN frees by bare address what libtorch's allocator of that moment has made: before the pool took its place, that
// was the former one.
void Pool::release_any(void* data) {
  if (data != nullptr && !installed_->offset_of(data, 1)) return installed_->former_->raw_deallocate(data);
  if (!installed_->in_child_) release(data);
}

void Pool::release(void* data) {
  if (data == nullptr) return;
  BlockHeap::Block* block = nullptr;
  std::memcpy(&block, static_cast<std::byte*>(data) - BlockHeap::kAlignment, sizeof block);
  auto* pool = static_cast<Pool*>(block->owner);
  const std::lock_guard lock(pool->mutex_);
  pool->stats_.in_use -= block->size;
  pool->heap_.release(block);
}

BlockHeap::Block* Pool::take(size_t bytes) {
  BlockHeap::Block* block = heap_.allocate(bytes);
  // Free blocks with and without memory lie apart; where neither is large enough, they can join without any.
  if (block == nullptr && give_back(0) > 0) block = heap_.allocate(bytes);
  if (block == nullptr) throw_exhausted(bytes);
  if (block->backed) return block;
  if (bytes < options_.granule) {
    // Small blocks are backed many at a time, and the first part of a larger free block serves as well.
    heap_.release(block);
    block = heap_.allocate(options_.granule);
    if (block != nullptr) {
      if (!block->backed) back(block);
      heap_.release(block);
    }
    block = heap_.allocate(bytes);
  }
  if (!block->backed) back(block);
  return block;
}

void Pool::throw_exhausted(size_t bytes) const {
  throw IoError("out of memory: the pool of ", human_bytes(mapping_.size()), " has no room for a tensor of ",
                human_bytes(bytes), ", ", human_bytes(stats_.in_use), " are in use; use a smaller batch");
}

// Puts memory behind a block just allocated, or releases it and throws.
void Pool::back(BlockHeap::Block* block) {
  const size_t first = block->offset / kPage * kPage;
  const size_t last = page_up(block->offset + block->size);
  trim(last - first);
  try {
    commit_memory(memfd_.get(), first, last - first, "tensors", options_.wanted.get());
  } catch (...) {
    heap_.release(block);
    throw;
  }
  block->backed = true;
}

// Gives back free blocks until `wanted` more bytes can be backed within the bound on held memory.
void Pool::trim(size_t wanted) {
  const size_t peak = std::max(stats_.peak, stats_.in_use + wanted);
  const size_t bound = peak + std::max(kLeastSlack, static_cast<size_t>(static_cast<double>(peak) * kSlackShare));
  if (stats_.held + wanted > bound) give_back(bound - std::min(bound, wanted));
  stats_.held += wanted;
}

// Gives the memory of free blocks back, largest first, until at most `bound` bytes are held. Returns the number of
// holes punched.
size_t Pool::give_back(size_t bound) {
  stats_.held = held_bytes();
  size_t punched = 0;
  for (BlockHeap::Block* block : heap_.free_backed(1)) {
    if (stats_.held <= bound) break;
    const size_t first = page_up(block->offset);
    const size_t last = (block->offset + block->size) / kPage * kPage;
    if (last > first) {
      punch_hole(memfd_.get(), first, last - first);
      stats_.held -= std::min(stats_.held, last - first);
    }
    heap_.unback(block);
    ++punched;
  }
  stats_.holes += punched;
  return punched;
}

size_t Pool::held_bytes() const {
  struct stat status {};
  return fstat(memfd_.get(), &status) == 0 ? static_cast<size_t>(status.st_blocks) * 512 : stats_.held;
}

std::optional<size_t> Pool::offset_of(const void* data, size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(data);
  if (at < mapping_.data() || at + bytes > mapping_.data() + mapping_.size()) return std::nullopt;
  return static_cast<size_t>(at - mapping_.data());
}

Pool::Stats Pool::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.held = held_bytes();
  return stats;
}

}  // namespace lockstep::comm
