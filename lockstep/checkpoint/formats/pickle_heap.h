// What the pickle interpreter works on: small items that refer to each other by number. Nothing here owns what it
// refers to, so however deep, shared or circular a file makes its values, they are built and dropped in linear time.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/checkpoint/formats/pickle_globals.h"

namespace lockstep::checkpoint {

struct None {};

// Bytes of the pickle itself; a pickle is shorter than 4 GiB.
struct Slice {
  uint32_t offset;
  uint32_t length;
};
struct Text : Slice {};        // UTF-8, checked
struct Latin1Text : Slice {};  // UTF-8 whose characters stand for bytes, as Python writes bytes at protocol 2
struct RawBytes : Slice {};

// Places in the heap.
struct ContainerRef {
  uint32_t index;
};
struct StorageRef {
  uint32_t index;
};
struct TensorRef {
  uint32_t index;
};

using Item =
    std::variant<None, bool, int64_t, double, Text, Latin1Text, RawBytes, ContainerRef, StorageRef, TensorRef, Global>;
static_assert(sizeof(Item) == 16);

struct Container {
  enum class Kind : uint8_t { kList, kTuple, kDict };
  Kind kind;
  std::vector<Item> items;  // of a dict: key, value, key, value …
};

struct HeapStorage {
  c10::Storage storage;
  at::ScalarType dtype;  // of the storage's class; kByte for an untyped one
};

struct Heap {
  std::string_view bytes;  // the pickle
  std::vector<Container> containers;
  std::vector<HeapStorage> storages;
  std::vector<at::Tensor> tensors;

  std::string_view text(const Slice& slice) const { return bytes.substr(slice.offset, slice.length); }
  ContainerRef add(Container::Kind kind, std::vector<Item> items = {});  // Fault past a bound on their number
  // The container that the item refers to if it is one of that kind, or nullptr; valid until the next add().
  Container* container(const Item& item, Container::Kind kind);
};

}  // namespace lockstep::checkpoint
