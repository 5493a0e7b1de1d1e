#include "lockstep/comm/memory/block_heap.h"

#include <algorithm>
#include <bit>

namespace lockstep::comm {

// Sizes are counted in units of kAlignment. Below 16 units every size is a class of its own.
BlockHeap::Class BlockHeap::class_of(size_t size) {
  const size_t units = size / kAlignment;
  if (units < kSecondCount) return {0, static_cast<int>(units)};
  const int log = std::bit_width(units) - 1;
  return {log - kSecondBits + 1, static_cast<int>(units >> (log - kSecondBits)) - kSecondCount};
}

BlockHeap::BlockHeap(size_t capacity) {
  tail_ = new_block();
  tail_->size = capacity / kAlignment * kAlignment;
  link(tail_);
}

BlockHeap::Block* BlockHeap::new_block() {
  if (spare_.empty()) return &storage_.emplace_back();
  Block* block = spare_.back();
  spare_.pop_back();
  *block = Block{};
  return block;
}

void BlockHeap::link(Block* block) {
  const auto [first, second] = class_of(block->size);
  FreeLists& lists = free_[block->backed];
  Block*& head = lists.heads[static_cast<size_t>(first)][static_cast<size_t>(second)];
  block->free = true;
  block->previous_free = nullptr;
  block->next_free = head;
  if (head != nullptr) head->previous_free = block;
  head = block;
  lists.second_map[static_cast<size_t>(first)] |= 1u << second;
  lists.first_map |= uint64_t{1} << first;
}

void BlockHeap::unlink(Block* block) {
  const auto [first, second] = class_of(block->size);
  FreeLists& lists = free_[block->backed];
  Block*& head = lists.heads[static_cast<size_t>(first)][static_cast<size_t>(second)];
  if (block->previous_free != nullptr) block->previous_free->next_free = block->next_free;
  if (block->next_free != nullptr) block->next_free->previous_free = block->previous_free;
  if (head == block) head = block->next_free;
  if (head == nullptr) {
    lists.second_map[static_cast<size_t>(first)] &= ~(1u << second);
    if (lists.second_map[static_cast<size_t>(first)] == 0) lists.first_map &= ~(uint64_t{1} << first);
  }
  block->free = false;
  block->previous_free = block->next_free = nullptr;
}

// A block of the size's own class that happens to fit, or else the first block of the smallest class whose every block
// fits.
BlockHeap::Block* BlockHeap::find_fit(const FreeLists& lists, size_t size) {
  const auto [first, second] = class_of(size);
  Block* block = lists.heads[static_cast<size_t>(first)][static_cast<size_t>(second)];
  for (int tries = 0; block != nullptr && tries < 8; ++tries, block = block->next_free) {
    if (block->size >= size) return block;  // the same tensor as a step ago, most of the time
  }
  const uint32_t larger = second + 1 < kSecondCount ? ~0u << (second + 1) : 0;
  const uint32_t seconds = lists.second_map[static_cast<size_t>(first)] & larger;
  if (seconds != 0) return lists.heads[static_cast<size_t>(first)][static_cast<size_t>(std::countr_zero(seconds))];
  const uint64_t firsts = lists.first_map & (~uint64_t{0} << (first + 1));
  if (firsts == 0) return nullptr;
  const auto row = static_cast<size_t>(std::countr_zero(firsts));
  return lists.heads[row][static_cast<size_t>(std::countr_zero(lists.second_map[row]))];
}

BlockHeap::Block* BlockHeap::allocate(size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  const size_t size = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  Block* block = find_fit(free_[true], size);
  if (block == nullptr) block = find_fit(free_[false], size);
  if (block == nullptr) return nullptr;
  unlink(block);
  if (block->size > size) {
    Block* rest = new_block();
    rest->offset = block->offset + size;
    rest->size = block->size - size;
    rest->backed = block->backed;
    rest->before = block;
    rest->after = block->after;
    if (rest->after != nullptr) rest->after->before = rest;
    if (tail_ == block) tail_ = rest;
    block->after = rest;
    block->size = size;
    link(rest);
  }
  return block;
}

void BlockHeap::merge_with_after(Block* block) {
  Block* after = block->after;
  block->size += after->size;
  block->backed = block->backed && after->backed;
  block->after = after->after;
  if (block->after != nullptr) block->after->before = block;
  if (tail_ == after) tail_ = block;
  spare_.push_back(after);
}

// Merges with free neighbours. Backed and unbacked blocks don't merge: the heap would forget that a part has memory.
void BlockHeap::release(Block* block) {
  const auto joins = [block](const Block* other) {
    return other != nullptr && other->free && other->backed == block->backed;
  };
  if (joins(block->after)) {
    unlink(block->after);
    merge_with_after(block);
  }
  if (joins(block->before)) {
    block = block->before;
    unlink(block);
    merge_with_after(block);
  }
  link(block);
}

void BlockHeap::unback(Block* block) {
  unlink(block);
  block->backed = false;
  release(block);
}

std::vector<BlockHeap::Block*> BlockHeap::free_backed(size_t bytes) {
  std::vector<Block*> found;
  for (Block* block = tail_; block != nullptr; block = block->before) {
    if (block->free && block->backed && block->size >= bytes) found.push_back(block);
  }
  std::stable_sort(found.begin(), found.end(), [](const Block* a, const Block* b) { return a->size > b->size; });
  return found;
}

}  // namespace lockstep::comm
