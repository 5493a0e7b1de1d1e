// The arguments of a call that a pickle asks for, by their types.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/pickle_heap.h"

namespace lockstep::checkpoint {

// One that is missing or of another type is a Fault. Valid until the heap's next add().
class CallArguments {
 public:
  CallArguments(Heap& heap, const Item& tuple) : heap_(heap), tuple_(heap.container(tuple, Container::Kind::kTuple)) {
    if (tuple_ == nullptr) throw Fault{"a call without a tuple of arguments"};
  }

  size_t size() const { return tuple_->items.size(); }

  const Item& item(size_t i) const {
    if (i >= size()) throw Fault{cat("a call with only ", size(), " arguments")};
    return tuple_->items[i];
  }
  template <typename T>
  const T& as(size_t i, std::string_view what) const {
    const T* argument = std::get_if<T>(&item(i));
    if (argument == nullptr) throw Fault{cat("argument ", i, " of a call is not ", what)};
    return *argument;
  }
  std::string_view text(size_t i) const { return heap_.text(as<Text>(i, "a string")); }
  int64_t whole(size_t i) const { return as<int64_t>(i, "a whole number"); }

  // A tensor's sizes or strides.
  std::vector<int64_t> wholes(size_t i) const {
    constexpr size_t kMost = 64;  // dimensions of libtorch
    const Container* items = heap_.container(item(i), Container::Kind::kTuple);
    if (items == nullptr) throw Fault{cat("argument ", i, " of a call is not a tuple")};
    if (items->items.size() > kMost) throw Fault{"a tensor of more than 64 dimensions"};
    std::vector<int64_t> numbers;
    for (const Item& number : items->items) {
      const auto* whole = std::get_if<int64_t>(&number);
      if (whole == nullptr) throw Fault{cat("argument ", i, " of a call holds something else than whole numbers")};
      numbers.push_back(*whole);
    }
    return numbers;
  }

 private:
  Heap& heap_;
  const Container* tuple_;
};

}  // namespace lockstep::checkpoint
