// The state of the pickle interpreter: stack, marks, memo. pickle_reader.cc has its operations.
#pragma once

#include <unordered_map>
#include <vector>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/storage_source.h"

namespace lockstep::checkpoint {

// Every operation throws a Fault if the stack does not hold what it needs.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, StorageSource* storages) : cursor(bytes), storages_(storages) {
    heap.bytes = bytes;
  }

  ByteCursor cursor;  // at the arguments of the current operation
  Heap heap;

  void push(Item item) { stack_.push_back(std::move(item)); }
  Item pop();
  const Item& top() const;
  void mark() { marks_.push_back(stack_.size()); }
  std::vector<Item> pop_to_mark();
  void check_empty() const;  // called last, after the result is popped

  void push_text(uint64_t length);     // of the bytes at the cursor; must be UTF-8
  void push_bytes(uint64_t length);    // of the bytes at the cursor
  void push_integer(uint64_t length);  // little-endian two's complement of so many bytes, at most 8
  void push_container(Container::Kind kind, std::vector<Item> items = {}) { push(heap.add(kind, std::move(items))); }
  void push_tuple(size_t size);  // of the topmost items

  void append(std::vector<Item> items);     // to the list below them
  void set_items(std::vector<Item> items);  // key, value, key, value …: into the dict below them

  void memoize(uint64_t key);
  void memoize_next() { memoize(memo_.size()); }
  void recall(uint64_t key);

  void push_global(std::string_view module, std::string_view name) { push(find_global(module, name)); }
  void push_stack_global();
  void reduce();           // pops a function and its arguments, pushes the call's result
  void build();            // pops and drops the attributes that torch.save gives an OrderedDict (_metadata)
  void load_persistent();  // pops an id, pushes the storage

 private:
  Slice slice(uint64_t length);

  StorageSource* storages_;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Item> memo_;
};

}  // namespace lockstep::checkpoint
