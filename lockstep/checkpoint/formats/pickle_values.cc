#include "lockstep/checkpoint/formats/pickle_values.h"

#include <algorithm>
#include <string>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/latin1.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

// What an item expands to.
struct Extent {
  uint64_t bytes = 0;  // allocated, without the Value itself, which lies in its list or dict
  uint64_t tensor_bytes = 0;
  uint64_t leaves = 0;
  uint64_t paths = 0;  // characters of the paths to all leaves
  int height = 0;      // levels of containers
};

// Measures what an item expands to. Each container is visited once, however many items refer to it.
class Measure {
 public:
  Measure(Heap& heap, const ValueBounds& bounds) : heap_(heap), bounds_(bounds) {
    heap.budget.charge((sizeof(Extent) + 1) * heap.containers.size());
    left_ = heap.budget.left();
    extents_.resize(heap.containers.size());
    states_.resize(heap.containers.size(), State::kNew);
  }

  Extent of(const Item& item, int depth = 0) {
    if (const auto* ref = std::get_if<ContainerRef>(&item)) return of_container(ref->index, depth);
    Extent extent{.leaves = 1};
    if (const auto* text = std::get_if<Text>(&item)) extent.bytes = text_bytes(text->length);
    if (const auto* text = std::get_if<Latin1Text>(&item)) extent.bytes = text_bytes(text->length);
    if (const auto* bytes = std::get_if<RawBytes>(&item)) extent.bytes = text_bytes(bytes->length);
    if (const auto* unknown = std::get_if<Unknown>(&item))
      extent.bytes = text_bytes(heap_.names[unknown->index].size());
    if (const auto* tensor = std::get_if<TensorRef>(&item)) extent.tensor_bytes = heap_.tensors[tensor->index].nbytes();
    if (const auto* array = std::get_if<NumpyArrayRef>(&item)) {
      const at::Tensor& tensor = heap_.numpy_arrays[array->index].tensor;
      if (tensor.defined()) extent.tensor_bytes = tensor.nbytes();
    }
    return extent;
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };

  Extent of_container(uint32_t index, int depth) {
    if (states_[index] == State::kOpen) throw Fault{"a list or dict that holds itself"};
    if (states_[index] == State::kNew) {
      check_depth(depth + 1);
      states_[index] = State::kOpen;
      const Container& container = heap_.containers[index];
      extents_[index] = container.kind == Container::Kind::kDict ? of_dict(container.items, depth + 1)
                                                                 : of_list(container.items, depth + 1);
      states_[index] = State::kDone;
    }
    check_depth(depth + extents_[index].height);
    return extents_[index];
  }

  Extent of_list(const std::vector<Item>& items, int depth) {
    Extent sum{.bytes = block_bytes(items.size() * sizeof(Value)), .height = 1};
    for (size_t i = 0; i < items.size(); ++i) add(sum, of(items[i], depth), kDigits);
    return sum;
  }

  Extent of_dict(const std::vector<Item>& items, int depth) {
    Extent sum{.bytes = Dict::bytes_for(items.size() / 2) + kBlocksOfADict, .height = 1};
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const uint64_t length = key_length(items[i]);
      sum.bytes += text_bytes(length);
      add(sum, of(items[i + 1], depth), length);
    }
    return sum;
  }

  // The sums can't overflow: a sum and a part within the bounds are added before the next check.
  void add(Extent& sum, const Extent& part, uint64_t key_length) const {
    sum.bytes += part.bytes;
    sum.tensor_bytes += part.tensor_bytes;
    sum.leaves += part.leaves;
    sum.paths += part.paths + part.leaves * (key_length + 1);
    sum.height = std::max(sum.height, part.height + 1);
    if (sum.bytes > left_ || sum.leaves > left_) throw Fault{"shared lists that expand to more than memory may hold"};
    if (sum.paths > left_) throw Fault{"names that expand to more than memory may hold"};
    if (sum.tensor_bytes > bounds_.tensor_bytes) {
      throw Fault{cat("tensors that expand to more than ", human_bytes(bounds_.tensor_bytes))};
    }
  }

  uint64_t key_length(const Item& key) const {
    if (const auto* text = std::get_if<Text>(&key)) return text->length;
    if (const auto* unknown = std::get_if<Unknown>(&key)) return heap_.names[unknown->index].size() + kDigits;
    return kDigits;
  }

  void check_depth(int depth) const {
    if (depth > bounds_.depth) throw Fault{cat("lists and dicts nested more than ", bounds_.depth, " deep")};
  }

  static constexpr uint64_t kDigits = 20;         // of a number as a key
  static constexpr uint64_t kBlocksOfADict = 48;  // what malloc adds to its three blocks
  Heap& heap_;
  const ValueBounds& bounds_;
  uint64_t left_ = 0;
  std::vector<Extent> extents_;
  std::vector<State> states_;
};

// Builds the Value of a measured item, whose depth and size are known to be bounded.
class Builder {
 public:
  explicit Builder(const Heap& heap) : heap_(heap) {}

  Value build(const Item& item) const {
    return std::visit([&](const auto& content) { return value(content); }, item);
  }

 private:
  Value value(None) const { return {}; }
  Value value(bool boolean) const { return boolean; }
  Value value(int64_t number) const { return number; }
  Value value(double number) const { return number; }
  Value value(const Text& text) const { return heap_.text(text); }
  Value value(const Latin1Text& text) const {
    const auto length = latin1_length(heap_.text(text));
    if (!length) throw Fault{"bytes that hold more than bytes"};
    std::string bytes(*length, '\0');
    latin1_decode(heap_.text(text), bytes.data());
    return Bytes{std::move(bytes)};
  }
  Value value(const RawBytes& bytes) const { return Bytes{std::string(heap_.text(bytes))}; }
  Value value(const TensorRef& tensor) const { return heap_.tensors[tensor.index]; }
  Value value(const StorageRef&) const { throw Fault{"a storage where a value should be"}; }
  Value value(const NumpyDtypeRef& ref) const {
    const NumpyDtype& dtype = heap_.numpy_dtypes[ref.index];
    return cat("numpy.", dtype.dtype ? dtype_name(*dtype.dtype) : printable(dtype.name, 16));
  }
  Value value(const NumpyArrayRef& ref) const {
    const NumpyArray& array = heap_.numpy_arrays[ref.index];
    if (array.unknown) return value(*array.unknown);
    if (!array.tensor.defined()) throw Fault{"a numpy array without its content"};
    return array.tensor;
  }
  Value value(const Unknown& unknown) const { return Opaque{heap_.names[unknown.index]}; }
  Value value(const Global& global) const {
    if (global.kind == Global::Kind::kDtype) return cat("torch.", dtype_name(global.dtype));
    throw Fault{"a class where a value should be"};
  }
  Value value(const ContainerRef& ref) const {
    const auto& [kind, items] = heap_.containers[ref.index];
    if (kind == Container::Kind::kDict) return dict(items);
    List list;
    list.reserve(items.size());
    for (const Item& item : items) list.push_back(build(item));
    if (kind == Container::Kind::kTuple) return Tuple{std::move(list)};
    return list;
  }

  Value dict(const std::vector<Item>& items) const {
    Dict dict;
    dict.reserve(items.size() / 2);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (const auto* unknown = std::get_if<Unknown>(&items[i])) {
        dict.set(free_key(dict, heap_.names[unknown->index]), build(items[i + 1]));
      } else {
        dict.set(key(items[i]), build(items[i + 1]));
      }
    }
    return dict;
  }
  Key key(const Item& item) const {
    if (const auto* text = std::get_if<Text>(&item)) return std::string(heap_.text(*text));
    if (const auto* number = std::get_if<int64_t>(&item)) return *number;
    if (const auto* boolean = std::get_if<bool>(&item)) return int64_t{*boolean};  // equal and one key in Python
    throw Fault{"a dict whose keys are neither strings nor whole numbers"};
  }
  // Objects of one class are several keys, whose content nobody knows.
  static Key free_key(const Dict& dict, const std::string& name) {
    return dict.contains(name) ? Key(cat(name, " ", dict.size())) : Key(name);
  }

  const Heap& heap_;
};

}  // namespace

Value to_value(Heap& heap, const Item& item, const ValueBounds& bounds) {
  heap.budget.charge(Measure(heap, bounds).of(item).bytes);
  return Builder(heap).build(item);
}

}  // namespace lockstep::checkpoint
