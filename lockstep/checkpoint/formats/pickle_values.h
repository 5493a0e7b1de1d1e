// From the interpreter's items to Values, which own their content.
#pragma once

#include <cstdint>

#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// What a value may grow to once every shared container is written out at each of its places.
struct ValueBounds {
  uint64_t values = 0;        // items, and one more for every 32 bytes of text
  uint64_t tensor_bytes = 0;  // of all tensors, as if each were contiguous
  int depth = 1000;           // of containers in containers
};

// The item with all that it refers to. Throws a Fault if it would exceed the bounds, holds itself, has a dict with keys
// that are neither strings nor whole numbers, or holds what is no value (a class, a storage). It is measured before
// anything is built, so a refusal costs no memory.
Value to_value(const Heap& heap, const Item& item, const ValueBounds& bounds);

}  // namespace lockstep::checkpoint
