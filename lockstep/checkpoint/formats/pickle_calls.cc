#include "lockstep/checkpoint/formats/pickle_calls.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/call_arguments.h"
#include "lockstep/checkpoint/formats/pickle_numpy.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 50;  // far above any memory, far below any overflow
constexpr size_t kMaxKey = 128;                     // characters of a storage's key: PyTorch's are numbers

Item make_tensor(Heap& heap, const HeapStorage& storage, at::ScalarType dtype, const TensorGeometry& geometry) {
  const auto elements = static_cast<int64_t>(storage.storage.nbytes() / c10::elementSize(dtype));
  const std::string fault = geometry_fault(geometry, elements);
  if (!fault.empty()) throw Fault{fault};
  if (element_count(geometry) > kMaxElements) throw Fault{"a tensor too large for any memory"};
  return heap.add(tensor_over(storage.storage, dtype, geometry));
}

// (storage, offset, size, stride[, requires_grad, hooks[, dtype (version 3 only)][, metadata]])
Item rebuild_tensor(Heap& heap, const CallArguments& arguments, bool names_dtype) {
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

// The tensor that an item is: PyTorch's, or numpy's array.
at::Tensor tensor_of(const Heap& heap, const Item& item) {
  if (const auto* ref = std::get_if<TensorRef>(&item)) return heap.tensors[ref->index];
  if (const auto* ref = std::get_if<NumpyArrayRef>(&item)) {
    if (heap.numpy_arrays[ref->index].tensor.defined()) return heap.numpy_arrays[ref->index].tensor;
  }
  throw Fault{"argument 0 of a call is not a tensor"};
}

// (tensor, dtype, device, requires_grad)
Item rebuild_from_host(const Heap& heap, const CallArguments& arguments) {
  const Global& dtype = arguments.as<Global>(1, "an element type");
  if (dtype.kind != Global::Kind::kDtype || tensor_of(heap, arguments.item(0)).scalar_type() != dtype.dtype) {
    throw Fault{"a tensor of an accelerator whose copy has another element type"};
  }
  return arguments.item(0);
}

// (function, class, arguments, state): function(*arguments) if the class is PyTorch's own.
Item rebuild_from_type(Heap& heap, const CallArguments& arguments) {
  const Item type = arguments.item(1);
  if (std::holds_alternative<Unknown>(type)) return type;
  using Kind = Global::Kind;
  const Global& function = arguments.as<Global>(0, "a function");
  const bool is_plain = function.kind == Kind::kRebuildTensor || function.kind == Kind::kRebuildTensorV3 ||
                        function.kind == Kind::kRebuildParameter;
  if (arguments.as<Global>(1, "a class").kind != Kind::kTensorClass || !is_plain) {
    throw Fault{"a tensor rebuilt by something else than PyTorch's functions"};
  }
  return call(heap, function, arguments.item(2));
}

// OrderedDict(), OrderedDict([[key, value], …]) as Python 2 writes it, Counter({key: count}). The pairs' list itself
// becomes the dict, so that no file makes us copy anything twice.
Item make_dict(Heap& heap, const CallArguments& arguments) {
  if (arguments.size() == 0) return heap.add(Container::Kind::kDict);
  const Item& argument = arguments.item(0);
  if (heap.container(argument, Container::Kind::kDict) != nullptr) return argument;
  Container* pairs = heap.container(argument, Container::Kind::kList);
  if (pairs == nullptr) throw Fault{"a dict made from something else than pairs"};
  heap.budget.charge_growth(std::vector<Item>(), 2 * pairs->items.size());
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

// set([…]), and list() or tuple() without what they are made from.
Item make_sequence(Heap& heap, const CallArguments& arguments) {
  if (arguments.size() == 0) return heap.add(Container::Kind::kList);
  const Item& argument = arguments.item(0);
  if (heap.container(argument, Container::Kind::kTuple) == nullptr &&
      heap.container(argument, Container::Kind::kList) == nullptr) {
    throw Fault{"a size or set made from something else than a list"};
  }
  return argument;
}

Item encode(const CallArguments& arguments) {
  const std::string_view encoding = arguments.text(1);
  if (encoding != "latin1" && encoding != "latin-1") throw Fault{cat("bytes in the encoding ", printable(encoding))};
  return Latin1Text{arguments.as<Text>(0, "a string")};
}

// bytes(), bytearray(), bytearray(bytes), bytearray(text, 'latin-1')
Item make_bytes(const CallArguments& arguments) {
  if (arguments.size() == 0) return RawBytes{};
  const Item& argument = arguments.item(0);
  if (std::holds_alternative<RawBytes>(argument) || std::holds_alternative<Latin1Text>(argument)) return argument;
  return encode(arguments);
}

Item call_global(Heap& heap, Global::Kind kind, const CallArguments& arguments) {
  switch (kind) {
    case Global::Kind::kDict:
      return make_dict(heap, arguments);
    case Global::Kind::kDefaultDict:  // its one argument makes values that are missing
      return heap.add(Container::Kind::kDict);
    case Global::Kind::kSequence:
      return make_sequence(heap, arguments);
    case Global::Kind::kBytes:
      return make_bytes(arguments);
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
    case Global::Kind::kRebuildFromType:
      return rebuild_from_type(heap, arguments);
    case Global::Kind::kRebuildFromHost:
      return rebuild_from_host(heap, arguments);
    case Global::Kind::kNumpyReconstruct:
      return make_numpy_array(heap, arguments);
    case Global::Kind::kNumpyFromBuffer:
      return make_numpy_array_from_buffer(heap, arguments);
    case Global::Kind::kNumpyScalar:
      return make_numpy_scalar(heap, arguments);
    case Global::Kind::kNumpyDtype:
      return make_numpy_dtype(heap, arguments);
    case Global::Kind::kTensorClass:
    case Global::Kind::kStorage:
    case Global::Kind::kDtype:
    case Global::Kind::kNumpyArray:
      break;
  }
  throw Fault{"a call of something that is no function"};
}

}  // namespace

Item call(Heap& heap, const Item& function, const Item& tuple) {
  if (std::holds_alternative<Unknown>(function)) return function;
  const auto* global = std::get_if<Global>(&function);
  if (global == nullptr) throw Fault{"a call of something that is no function"};
  const CallArguments arguments(heap, tuple);
  // What is made of an unknown object is unknown.
  const auto* unknown = arguments.size() == 0 ? nullptr : std::get_if<Unknown>(&arguments.item(0));
  if (unknown != nullptr && global->kind != Global::Kind::kDefaultDict) return *unknown;
  return call_global(heap, global->kind, arguments);
}

void set_state(Heap& heap, const Item& object, const Item& state) {
  if (std::holds_alternative<Unknown>(object)) return;
  if (const auto* dtype = std::get_if<NumpyDtypeRef>(&object)) return set_numpy_state(heap, *dtype, state);
  if (const auto* array = std::get_if<NumpyArrayRef>(&object)) return set_numpy_state(heap, *array, state);
  if (heap.container(object, Container::Kind::kDict) == nullptr ||
      heap.container(state, Container::Kind::kDict) == nullptr) {
    throw Fault{"an object with a state of its own, which is not supported"};
  }
}

Item load_persistent(Heap& heap, const Item& id, StorageSource* source) {
  const CallArguments parts(heap, id);
  if (source == nullptr) throw Fault{"a tensor where none may be"};
  if (parts.text(0) != "storage") throw Fault{cat("a persistent id of the kind ", printable(parts.text(0)))};
  if (const auto* unknown = std::get_if<Unknown>(&parts.item(1))) return *unknown;
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
  if (parts.text(2).size() > kMaxKey) throw Fault{cat("a storage whose key has ", parts.text(2).size(), " characters")};
  return heap.add(HeapStorage{source->storage({parts.text(2), bytes}), type.dtype});
}

}  // namespace lockstep::checkpoint
