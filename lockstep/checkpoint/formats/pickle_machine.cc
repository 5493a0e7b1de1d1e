#include "lockstep/checkpoint/formats/pickle_machine.h"

#include <utility>

#include "lockstep/base/utf8.h"
#include "lockstep/checkpoint/formats/pickle_calls.h"

namespace lockstep::checkpoint {

void PickleMachine::push(const Item& item) {
  if (stack_.size() == highest_) {
    heap.budget.charge_growth(stack_, 1);
    ++highest_;
  }
  stack_.push_back(item);
}

Item PickleMachine::pop() {
  const Item item = top();
  stack_.pop_back();
  return item;
}

const Item& PickleMachine::top() const {
  if (stack_.size() <= bottom()) throw Fault{"an operation without its operands"};
  return stack_.back();
}

void PickleMachine::mark() {
  if (marks_.size() == most_marks_) {
    heap.budget.charge_growth(marks_, 1);
    ++most_marks_;
  }
  marks_.push_back(stack_.size());
}

size_t PickleMachine::drop_mark() {
  if (marks_.empty()) throw Fault{"an operation without its mark"};
  const size_t first = marks_.back();
  marks_.pop_back();
  return first;
}

void PickleMachine::check_empty() const {
  if (!stack_.empty() || !marks_.empty()) throw Fault{"ends with more than its result on the stack"};
}

Slice PickleMachine::slice(uint64_t length) {
  const auto offset = static_cast<uint32_t>(cursor.position());
  cursor.skip(length);
  return {offset, static_cast<uint32_t>(length)};
}

void PickleMachine::push_text(uint64_t length) {
  const Text text{slice(length)};
  if (!is_utf8(heap.bytes.at(text.offset, text.length))) throw Fault{"a string that is not UTF-8"};
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

void PickleMachine::push_marked(Container::Kind kind) {
  const size_t first = drop_mark();
  if (kind == Container::Kind::kDict && above(first).size() % 2 != 0) throw Fault{"a dict of a key without its value"};
  const ContainerRef made = heap.add(kind, above(first));
  stack_.resize(first);
  push(made);
}

void PickleMachine::push_tuple(size_t size) {
  if (stack_.size() < bottom() + size) throw Fault{"an operation without its operands"};
  const size_t first = stack_.size() - size;
  const ContainerRef made = heap.add(Container::Kind::kTuple, above(first));
  stack_.resize(first);
  push(made);
}

// Moves the items from `first` on into the container below them. What an unknown class holds is dropped.
void PickleMachine::add_items(Container::Kind kind, size_t first, std::string_view fault) {
  if (first <= bottom() || first > stack_.size()) throw Fault{"an operation without its operands"};
  const Item& target = stack_[first - 1];
  if (!std::holds_alternative<Unknown>(target)) {
    Container* container = heap.container(target, kind);
    if (container == nullptr) throw Fault{std::string(fault)};
    heap.append(*container, above(first));
  }
  stack_.resize(first);
}

void PickleMachine::append() {
  add_items(Container::Kind::kList, stack_.size() - std::min<size_t>(stack_.size(), 1),
            "items appended to what is no list");
}

void PickleMachine::append_marked() {
  add_items(Container::Kind::kList, drop_mark(), "items appended to what is no list");
}

void PickleMachine::set_item() {
  add_items(Container::Kind::kDict, stack_.size() - std::min<size_t>(stack_.size(), 2), "items set in what is no dict");
}

void PickleMachine::set_marked_items() {
  const size_t first = drop_mark();
  if (above(first).size() % 2 != 0) throw Fault{"items set in a dict, one without its value"};
  add_items(Container::Kind::kDict, first, "items set in what is no dict");
}

void PickleMachine::recall(uint64_t key) {
  const Item* item = memo_.find(key);
  if (item == nullptr) throw Fault{cat("recalls value ", key, ", which was never stored")};
  push(*item);
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  if (const auto known = find_global(module, name)) return push(*known);
  if (!heap.ignore_unknown) throw Fault{global_fault(module, name)};
  push(heap.add_unknown(global_name(module, name)));
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
  push(call(heap, function, arguments));
}

void PickleMachine::reduce_with_keywords() {
  const Item keywords = pop();
  const Container* dict = heap.container(keywords, Container::Kind::kDict);
  if (dict == nullptr) throw Fault{"a call whose keywords are no dict"};
  const bool none = dict->items.empty();
  const Item arguments = pop();
  const Item function = pop();
  if (!none && !std::holds_alternative<Unknown>(function)) throw Fault{"a call with keywords, which none needs"};
  push(call(heap, function, arguments));
}

void PickleMachine::reduce_marked() {
  const size_t first = drop_mark();
  if (first == stack_.size()) throw Fault{"an operation without its operands"};
  const Item function = stack_[first];
  const ContainerRef arguments = heap.add(Container::Kind::kTuple, above(first + 1));
  stack_.resize(first);
  push(call(heap, function, arguments));
}

void PickleMachine::instance(std::string_view module, std::string_view name) {
  push_marked(Container::Kind::kTuple);
  push_global(module, name);
  const Item function = pop();
  const Item arguments = pop();
  push(call(heap, function, arguments));
}

void PickleMachine::build() {
  const Item state = pop();
  set_state(heap, top(), state);
}

void PickleMachine::load_persistent() { push(checkpoint::load_persistent(heap, pop(), storages_)); }

}  // namespace lockstep::checkpoint
