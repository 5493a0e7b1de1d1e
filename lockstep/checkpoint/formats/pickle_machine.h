// The state of the pickle interpreter: stack, marks, memo. pickle_reader.cc has its operations.
#pragma once

#include <span>
#include <vector>

#include "lockstep/checkpoint/formats/memory_budget.h"
#include "lockstep/checkpoint/formats/pickle_bytes.h"
#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/pickle_memo.h"
#include "lockstep/checkpoint/formats/storage_source.h"

namespace lockstep::checkpoint {

// Every operation throws a Fault if the stack does not hold what it needs, or the budget does not.
class PickleMachine {
 public:
  PickleMachine(const PickleBytes& bytes, StorageSource* storages, MemoryBudget& budget)
      : cursor(bytes), heap(bytes, budget), storages_(storages), memo_(budget) {}

  PickleCursor cursor;  // at the arguments of the current operation
  Heap heap;

  void push(const Item& item);
  Item pop();
  const Item& top() const;
  void mark();
  void pop_to_mark() { stack_.resize(drop_mark()); }
  void check_empty() const;  // called last, after the result is popped

  void push_text(uint64_t length);     // of the bytes at the cursor; must be UTF-8
  void push_bytes(uint64_t length);    // of the bytes at the cursor, which may remain in their file
  void push_integer(uint64_t length);  // little-endian two's complement of so many bytes, at most 8
  void push_container(Container::Kind kind) { push(heap.add(kind)); }
  void push_marked(Container::Kind kind);  // of the items above the topmost mark
  void push_tuple(size_t size);            // of the topmost items

  void append();            // the topmost item to the list below it
  void append_marked();     // the items above the mark to the list below it
  void set_item();          // the topmost key and value in the dict below them
  void set_marked_items();  // the keys and values above the mark in the dict below it

  void memoize(uint64_t key) { memo_.put(key, top()); }
  void memoize_next() { memo_.put_next(top()); }
  void recall(uint64_t key);

  void push_global(std::string_view module, std::string_view name);
  void push_stack_global();
  void reduce();                // pops a class or function and its arguments, pushes the call's result
  void reduce_with_keywords();  // the same, with a dict of keywords above them
  void reduce_marked();         // a class and its arguments lie above the mark
  void instance(std::string_view module, std::string_view name);  // of a class whose arguments lie above the mark
  void build();            // pops a state and gives it to the object below: see pickle_calls.h
  void load_persistent();  // pops an id, pushes the storage

 private:
  Slice slice(uint64_t length);
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  size_t drop_mark();  // returns the place of the first item above it
  std::span<const Item> above(size_t first) const { return std::span(stack_).subspan(first); }
  void add_items(Container::Kind kind, size_t first, std::string_view fault);

  StorageSource* storages_;
  std::vector<Item> stack_;
  size_t highest_ = 0;  // the most items that the stack had
  std::vector<size_t> marks_;
  size_t most_marks_ = 0;
  PickleMemo memo_;
};

}  // namespace lockstep::checkpoint
