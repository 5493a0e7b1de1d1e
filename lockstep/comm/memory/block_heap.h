// Where blocks of memory lie: allocation over the offsets [0, capacity) of a pool, without touching the memory.
//
// Two-level segregated fit (Masmano, Ripoll, Crespo, Real, "TLSF: a new dynamic memory allocator for real-time
// systems", ECRTS 2004): free blocks hang in lists by size class (a power of two split into 16), two bitmaps find the
// smallest class that surely fits, neighbours merge when freed; every operation takes constant time. What is free is
// used again before new offsets are, latest freed first, so a training step meets the blocks of the step before; what
// has memory behind it is used before what has none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace lockstep::comm {

class BlockHeap {
 public:
  static constexpr size_t kAlignment = 64;

  struct Block {
    size_t offset = 0;
    size_t size = 0;  // a multiple of kAlignment
    bool free = false;
    bool backed = false;      // memory stands behind all of it
    void* owner = nullptr;    // the user's
    Block* before = nullptr;  // neighbours by offset
    Block* after = nullptr;
    Block* previous_free = nullptr;  // neighbours in its size class's list
    Block* next_free = nullptr;
  };

  explicit BlockHeap(size_t capacity);
  BlockHeap(const BlockHeap&) = delete;
  BlockHeap& operator=(const BlockHeap&) = delete;

  // A block of at least `bytes`; null if none of the capacity fits. Not backed if any part of it may lack memory: the
  // caller backs it and says so by setting `backed`.
  Block* allocate(size_t bytes);
  void release(Block* block);

  // Says that a free block lost its memory: it joins its neighbours without any. Invalidates no backed block.
  void unback(Block* block);

  // All free blocks of at least `bytes` that are backed, largest first: candidates to be given back.
  std::vector<Block*> free_backed(size_t bytes);

 private:
  static constexpr int kSecondBits = 4;
  static constexpr int kSecondCount = 1 << kSecondBits;
  static constexpr int kFirstCount = 48;

  struct Class {
    int first, second;
  };
  static Class class_of(size_t size);
  // The free blocks of one kind, with memory or without.
  struct FreeLists {
    std::array<std::array<Block*, kSecondCount>, kFirstCount> heads{};
    std::array<uint32_t, kFirstCount> second_map{};
    uint64_t first_map = 0;
  };
  static Block* find_fit(const FreeLists& lists, size_t size);
  void link(Block* block);
  void unlink(Block* block);
  Block* new_block();
  void merge_with_after(Block* block);

  std::array<FreeLists, 2> free_;  // without memory, with memory
  std::deque<Block> storage_;
  std::vector<Block*> spare_;
  Block* tail_ = nullptr;  // the last block by offset
};

}  // namespace lockstep::comm
