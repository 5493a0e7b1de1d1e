// Converts the interpreter's items to Values, which own their content.
#pragma once

#include <cstdint>

#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Bounds on a value in which every shared container is written out at each reference.
struct ValueBounds {
  uint64_t tensor_bytes = 0;  // of all tensors, as if each were contiguous
  int depth = 1000;           // of containers in containers
};

// Converts an item with all that it refers to. Throws a Fault if the result would exceed the bounds, or what is left of
// the heap's budget, or the paths to all leaves together would; if an item contains itself, a dict's key is neither a
// string nor a whole number, or anything is no value (a class, a storage). The item is measured before anything is
// built, so a refusal costs no memory.
Value to_value(Heap& heap, const Item& item, const ValueBounds& bounds);

}  // namespace lockstep::checkpoint
