// The heap of the pickle interpreter: small items that refer to each other by index. No item owns another, so values
// are built and dropped in linear time, however deep, shared or circular a file makes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/checkpoint/formats/memory_budget.h"
#include "lockstep/checkpoint/formats/numpy_dtype.h"
#include "lockstep/checkpoint/formats/pickle_bytes.h"
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
struct NumpyDtypeRef {
  uint32_t index;
};
struct NumpyArrayRef {
  uint32_t index;
};

// An unknown class, or what an unknown class or function would have made: named by names[index], never built.
struct Unknown {
  uint32_t index;
};

using Item = std::variant<None, bool, int64_t, double, Text, Latin1Text, RawBytes, ContainerRef, StorageRef, TensorRef,
                          NumpyDtypeRef, NumpyArrayRef, Global, Unknown>;
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

// A numpy array. Its creation says nothing yet: a later operation gives it one of these.
struct NumpyArray {
  at::Tensor tensor = {};
  std::optional<Unknown> unknown = {};  // an array of objects or texts, where unknown things are ignored
};

struct Heap {
  // Takes memory for what the pickle `bytes` describes from the budget. Both are borrowed.
  Heap(const PickleBytes& bytes, MemoryBudget& budget) : bytes(bytes), budget(budget), array_bytes(bytes.size()) {}

  const PickleBytes& bytes;
  MemoryBudget& budget;
  uint64_t array_bytes;         // what numpy's arrays may yet take
  bool ignore_unknown = false;  // what the closed list lacks becomes an Unknown item rather than a Fault
  std::vector<Container> containers;
  std::vector<HeapStorage> storages;
  std::vector<at::Tensor> tensors;
  std::vector<NumpyDtype> numpy_dtypes;
  std::vector<NumpyArray> numpy_arrays;
  std::vector<std::string> names;  // of what is unknown

  // A text has been looked at where it was pushed. Bytes may still be in their file.
  std::string_view text(const Text& slice) const { return bytes.there(slice.offset, slice.length); }
  std::string_view text(const Latin1Text& slice) const { return bytes.there(slice.offset, slice.length); }
  std::string_view text(const RawBytes& slice) const { return bytes.at(slice.offset, slice.length); }
  ContainerRef add(Container::Kind kind, std::span<const Item> items = {});
  void append(Container& container, std::span<const Item> items);
  TensorRef add(at::Tensor tensor);
  StorageRef add(HeapStorage storage);
  NumpyDtypeRef add(const NumpyDtype& dtype);
  NumpyArrayRef add(NumpyArray array);
  Unknown add_unknown(std::string name);

  // The container that the item refers to; nullptr if it is none of that kind. Valid until the next add().
  Container* container(const Item& item, Container::Kind kind);
};

}  // namespace lockstep::checkpoint
