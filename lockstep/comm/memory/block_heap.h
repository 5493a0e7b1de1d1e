// A heap of blocks: allocates ranges of the offsets [0, capacity) of a pool, without touching the memory behind them.
//
// The algorithm is two-level segregated fit (Masmano, Ripoll, Crespo, Real, "TLSF: a new dynamic memory allocator for
// real-time systems", ECRTS 2004). Free blocks are kept in lists by size class; a power of two is split into 16
// classes. Two bitmaps find the smallest class whose blocks all fit. Neighbours merge when freed. Every operation takes
// constant time. Free blocks are reused before new offsets, and the latest freed first, so a training step gets the
// blocks of the step before. Blocks backed by memory are used before others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace lockstep::comm {

// Not thread-safe; the heap owns its Block structures.
class BlockHeap {
 public:
  static constexpr size_t kAlignment = 64;

  struct Block {
    size_t offset = 0;
    size_t size = 0;  // a multiple of kAlignment
    bool free = false;
    bool backed = false;      // whether memory is behind all of it
    void* owner = nullptr;    // for the heap's user
    Block* before = nullptr;  // the neighbours by offset
    Block* after = nullptr;
    Block* previous_free = nullptr;  // the neighbours in the list of its size class
    Block* next_free = nullptr;
  };

  explicit BlockHeap(size_t capacity);
  BlockHeap(const BlockHeap&) = delete;
  BlockHeap& operator=(const BlockHeap&) = delete;

  // A block of at least `bytes`; null if no free range is large enough. The block is marked as not backed if any part
  // of it may lack memory: the caller then backs it and sets `backed`.
  Block* allocate(size_t bytes);
  void release(Block* block);

  // Marks a free block as no longer backed by memory, and merges it with unbacked neighbours. Pointers to backed blocks
  // stay valid.
  void unback(Block* block);

  // All backed free blocks of at least `bytes`, largest first: those whose memory may be given back.
  std::vector<Block*> free_backed(size_t bytes);

 private:
  static constexpr int kSecondBits = 4;
  static constexpr int kSecondCount = 1 << kSecondBits;
  static constexpr int kFirstCount = 48;

  struct Class {
    int first, second;
  };
  static Class class_of(size_t size);
  // The free blocks that are backed by memory, or those that are not.
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

  std::array<FreeLists, 2> free_;  // by Block::backed
  std::deque<Block> storage_;
  std::vector<Block*> spare_;
  Block* tail_ = nullptr;  // the last block by offset
};

}  // namespace lockstep::comm
