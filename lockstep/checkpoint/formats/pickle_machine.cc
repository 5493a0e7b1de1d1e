#include "lockstep/checkpoint/formats/pickle_machine.h"

#include <utility>

#include "lockstep/base/utf8.h"
#include "lockstep/checkpoint/formats/pickle_calls.h"

namespace lockstep::checkpoint {
Item PickleMachine::pop() {
  const Item item = top();
  stack_.pop_back();
  return item;
}

const Item& PickleMachine::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) throw Fault{"an operation without its operands"};
  return stack_.back();
}

std::vector<Item> PickleMachine::pop_to_mark() {
  if (marks_.empty()) throw Fault{"an operation without its mark"};
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Item> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleMachine::check_empty() const {
  if (!stack_.empty() || !marks_.empty()) throw Fault{"ends with more than its result on the stack"};
}

Slice PickleMachine::slice(uint64_t length) {
  const auto offset = static_cast<uint32_t>(cursor.position());
  return {offset, static_cast<uint32_t>(cursor.take(length).size())};
}

void PickleMachine::push_text(uint64_t length) {
  const Text text{slice(length)};
  if (!is_utf8(heap.text(text))) throw Fault{"a string that is not UTF-8"};
  push(text);
}

void PickleMachine::push_bytes(uint64_t length) { push(RawBytes{slice(length)}); }

void PickleMachine::push_integer(uint64_t length) {
  const std::string_view bytes = cursor.take(length);
  if (bytes.size() > sizeof(int64_t)) throw Fault{cat("a whole number of ", length, " bytes, more than 64 bits")};
  int64_t number = !bytes.empty() && (bytes.back() & 0x80) != 0 ? -1 : 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  push(number);
}

void PickleMachine::push_tuple(size_t size) {
  std::vector<Item> items(size);
  for (size_t i = size; i-- > 0;) items[i] = pop();
  push_container(Container::Kind::kTuple, std::move(items));
}

void PickleMachine::append(std::vector<Item> items) {
  Container* list = heap.container(top(), Container::Kind::kList);
  if (list == nullptr) throw Fault{"items appended to what is no list"};
  list->items.insert(list->items.end(), items.begin(), items.end());
}

void PickleMachine::set_items(std::vector<Item> items) {
  Container* dict = heap.container(top(), Container::Kind::kDict);
  if (dict == nullptr || items.size() % 2 != 0) throw Fault{"items set in what is no dict"};
  dict->items.insert(dict->items.end(), items.begin(), items.end());
}

void PickleMachine::memoize(uint64_t key) { memo_.insert_or_assign(key, top()); }

void PickleMachine::recall(uint64_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) throw Fault{cat("recalls value ", key, ", which was never stored")};
  push(found->second);
}

void PickleMachine::push_stack_global() {
  const Item name = pop();
  const Item module = pop();
  if (!std::holds_alternative<Text>(name) || !std::holds_alternative<Text>(module))
    throw Fault{"a global without a name"};
  push_global(heap.text(std::get<Text>(module)), heap.text(std::get<Text>(name)));
}

void PickleMachine::reduce() {
  const Item arguments = pop();
  const Item function = pop();
  if (!std::holds_alternative<Global>(function)) throw Fault{"a call of something that is no function"};
  push(call_global(heap, std::get<Global>(function), arguments));
}

void PickleMachine::build() {
  const Item state = pop();
  if (heap.container(top(), Container::Kind::kDict) == nullptr ||
      heap.container(state, Container::Kind::kDict) == nullptr) {
    throw Fault{"an object with a state of its own, which is not supported"};
  }
}

void PickleMachine::load_persistent() { push(checkpoint::load_persistent(heap, pop(), storages_)); }

}  // namespace lockstep::checkpoint
