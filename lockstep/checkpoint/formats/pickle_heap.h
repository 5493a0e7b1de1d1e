// The heap of the pickle interpreter: small items that refer to each other by index. No item owns another, so values
// are built and dropped in linear time, however deep, shared or circular a file makes them.
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

// A range of the pickle's bytes. A pickle is shorter than 4 GiB.
struct Slice {
  uint32_t offset;
  uint32_t length;
};
struct Text : Slice {};        // UTF-8, checked
struct Latin1Text : Slice {};  // UTF-8 whose characters stand for bytes, as Python writes bytes at protocol 2
struct RawBytes : Slice {};

// Indices into the heap's vectors.
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
  ContainerRef add(Container::Kind kind, std::vector<Item> items = {});  // throws a Fault past a bound on their number
  // The container that the item refers to; nullptr if it is none of that kind. Valid until the next add().
  Container* container(const Item& item, Container::Kind kind);
};

}  // namespace lockstep::checkpoint
