#include "lockstep/checkpoint/formats/pickle_calls.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kMaxTensors = 1u << 20;
constexpr int64_t kMaxElements = int64_t{1} << 50;  // far above any memory, far below any overflow

// The typed arguments of a call. One that is missing or of another type is a Fault.
class Arguments {
 public:
  Arguments(Heap& heap, const Item& tuple) : heap_(heap), tuple_(heap.container(tuple, Container::Kind::kTuple)) {
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

  std::vector<int64_t> wholes(size_t i) const {
    const Container* items = heap_.container(item(i), Container::Kind::kTuple);
    if (items == nullptr) throw Fault{cat("argument ", i, " of a call is not a tuple")};
    std::vector<int64_t> numbers;
    for (const Item& number : items->items) {
      const auto* whole = std::get_if<int64_t>(&number);
      if (whole == nullptr) throw Fault{cat("argument ", i, " of a call holds something else than whole numbers")};
      numbers.push_back(*whole);
      if (numbers.size() > 64) throw Fault{"a tensor of more than 64 dimensions"};
    }
    return numbers;
  }

 private:
  Heap& heap_;
  const Container* tuple_;
};

Item make_tensor(Heap& heap, const HeapStorage& storage, at::ScalarType dtype, const TensorGeometry& geometry) {
  const auto elements = static_cast<int64_t>(storage.storage.nbytes() / c10::elementSize(dtype));
  const std::string fault = geometry_fault(geometry, elements);
  if (!fault.empty()) throw Fault{fault};
  if (element_count(geometry) > kMaxElements) throw Fault{"a tensor too large for any memory"};
  if (heap.tensors.size() >= kMaxTensors) throw Fault{cat("more than ", kMaxTensors, " tensors")};
  at::Tensor tensor = at::empty({0}, dtype);
  tensor.set_(storage.storage, geometry.offset, geometry.sizes, geometry.strides);
  heap.tensors.push_back(std::move(tensor));
  return TensorRef{static_cast<uint32_t>(heap.tensors.size() - 1)};
}

// (storage, offset, size, stride[, requires_grad, hooks[, dtype (version 3 only)][, metadata]])
Item rebuild_tensor(Heap& heap, const Arguments& arguments, bool names_dtype) {
  const HeapStorage& storage = heap.storages[arguments.as<StorageRef>(0, "a storage").index];
  at::ScalarType dtype = storage.dtype;
  if (names_dtype) {
    const Global& named = arguments.as<Global>(6, "an element type");
    if (named.kind != Global::Kind::kDtype) throw Fault{"argument 6 of a call is not an element type"};
    dtype = named.dtype;
  }
  const size_t metadata = names_dtype ? 7 : 6;
  if (arguments.size() > metadata) {  // whether the elements are to be negated or conjugated when they are read
    const Container* flags = heap.container(arguments.item(metadata), Container::Kind::kDict);
    if (flags == nullptr || !flags->items.empty()) throw Fault{"a tensor with metadata, which is not supported"};
  }
  return make_tensor(heap, storage, dtype, {arguments.whole(1), arguments.wholes(2), arguments.wholes(3)});
}

// OrderedDict(), OrderedDict([[key, value], …]) as Python 2 writes it, Counter({key: count}). The pairs' list itself
// becomes the dict, so that no file makes us copy anything twice.
Item make_dict(Heap& heap, const Arguments& arguments) {
  if (arguments.size() == 0) return heap.add(Container::Kind::kDict);
  const Item& argument = arguments.item(0);
  if (heap.container(argument, Container::Kind::kDict) != nullptr) return argument;
  Container* pairs = heap.container(argument, Container::Kind::kList);
  if (pairs == nullptr) throw Fault{"a dict made from something else than pairs"};
  std::vector<Item> flat;
  for (const Item& item : pairs->items) {
    const Container* pair = heap.container(item, Container::Kind::kList);
    if (pair == nullptr) pair = heap.container(item, Container::Kind::kTuple);
    if (pair == nullptr || pair->items.size() != 2) throw Fault{"a dict made from something else than pairs"};
    flat.insert(flat.end(), pair->items.begin(), pair->items.end());
  }
  *pairs = {Container::Kind::kDict, std::move(flat)};
  return argument;
}

Item make_sequence(Heap& heap, const Arguments& arguments) {
  const Item& argument = arguments.item(0);
  if (heap.container(argument, Container::Kind::kTuple) == nullptr &&
      heap.container(argument, Container::Kind::kList) == nullptr) {
    throw Fault{"a size or set made from something else than a list"};
  }
  return argument;
}

Item encode(const Arguments& arguments) {
  if (arguments.text(1) != "latin1") throw Fault{cat("bytes in the encoding ", printable(arguments.text(1)))};
  return Latin1Text{arguments.as<Text>(0, "a string")};
}

}  // namespace

Item call_global(Heap& heap, const Global& global, const Item& tuple) {
  const Arguments arguments(heap, tuple);
  switch (global.kind) {
    case Global::Kind::kDict:
      return make_dict(heap, arguments);
    case Global::Kind::kSequence:
      return make_sequence(heap, arguments);
    case Global::Kind::kDevice:
      return arguments.as<Text>(0, "a string");
    case Global::Kind::kEncode:
      return encode(arguments);
    case Global::Kind::kRebuildTensor:
      return rebuild_tensor(heap, arguments, false);
    case Global::Kind::kRebuildTensorV3:
      return rebuild_tensor(heap, arguments, true);
    case Global::Kind::kRebuildParameter:
      return arguments.as<TensorRef>(0, "a tensor");
    case Global::Kind::kStorage:
    case Global::Kind::kDtype:
      break;
  }
  throw Fault{"a call of something that is no function"};
}

Item load_persistent(Heap& heap, const Item& id, StorageSource* source) {
  const Arguments parts(heap, id);
  if (source == nullptr) throw Fault{"a tensor where none may be"};
  if (parts.text(0) != "storage") throw Fault{cat("a persistent id of the kind ", printable(parts.text(0)))};
  const Global& type = parts.as<Global>(1, "a storage class");
  if (type.kind != Global::Kind::kStorage) throw Fault{"a persistent id without a storage class"};
  if (parts.size() > 5 && !std::holds_alternative<None>(parts.item(5))) {
    throw Fault{"a view of a storage as PyTorch wrote it before 0.4; save the file again with a newer one"};
  }
  const int64_t elements = parts.whole(4);
  int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, static_cast<int64_t>(c10::elementSize(type.dtype)), &bytes)) {
    throw Fault{cat("a storage of ", elements, " elements")};
  }
  heap.storages.push_back({source->storage({parts.text(2), bytes}), type.dtype});
  return StorageRef{static_cast<uint32_t>(heap.storages.size() - 1)};
}

}  // namespace lockstep::checkpoint
