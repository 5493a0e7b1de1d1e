#include "lockstep/checkpoint/formats/pickle_values.h"

#include <algorithm>
#include <string>

#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

struct Extent {
  uint64_t values = 0;
  uint64_t tensor_bytes = 0;
  int height = 0;  // levels of containers
};

// Measures what an item expands to. Each container is visited once, however many items refer to it.
class Measure {
 public:
  Measure(const Heap& heap, const ValueBounds& bounds)
      : heap_(heap), bounds_(bounds), extents_(heap.containers.size()), states_(heap.containers.size(), State::kNew) {}

  Extent of(const Item& item, int depth = 0) {
    if (const auto* ref = std::get_if<ContainerRef>(&item)) return of_container(ref->index, depth);
    Extent extent{.values = 1};
    if (const auto* text = std::get_if<Text>(&item)) extent.values += text->length / 32;
    if (const auto* text = std::get_if<Latin1Text>(&item)) extent.values += text->length / 32;
    if (const auto* bytes = std::get_if<RawBytes>(&item)) extent.values += bytes->length / 32;
    if (const auto* tensor = std::get_if<TensorRef>(&item)) extent.tensor_bytes = heap_.tensors[tensor->index].nbytes();
    return extent;
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };

  // The sums can't overflow: a sum within the bounds and a part within the bounds are added before the next check.
  Extent of_container(uint32_t index, int depth) {
    if (states_[index] == State::kOpen) throw Fault{"a list or dict that holds itself"};
    if (states_[index] == State::kNew) {
      check_depth(depth + 1);
      states_[index] = State::kOpen;
      Extent sum{.values = 1};
      for (const Item& item : heap_.containers[index].items) {
        const Extent part = of(item, depth + 1);
        sum.values += part.values;
        sum.tensor_bytes += part.tensor_bytes;
        sum.height = std::max(sum.height, part.height);
        check(sum);
      }
      ++sum.height;
      extents_[index] = sum;
      states_[index] = State::kDone;
    }
    check_depth(depth + extents_[index].height);
    return extents_[index];
  }

  void check_depth(int depth) const {
    if (depth > bounds_.depth) throw Fault{cat("lists and dicts nested more than ", bounds_.depth, " deep")};
  }
  void check(const Extent& sum) const {
    if (sum.values > bounds_.values) {
      throw Fault{cat("shared lists that expand to more than ", bounds_.values, " values")};
    }
    if (sum.tensor_bytes > bounds_.tensor_bytes) {
      throw Fault{cat("tensors that expand to more than ", human_bytes(bounds_.tensor_bytes))};
    }
  }

  const Heap& heap_;
  const ValueBounds& bounds_;
  std::vector<Extent> extents_;
  std::vector<State> states_;
};

std::string decode_latin1(std::string_view utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    if (lead < 0x80) {
      bytes += utf8[i];
    } else if (lead <= 0xc3 && i + 1 < utf8.size()) {  // two bytes of UTF-8 for 0x80 to 0xff
      bytes += static_cast<char>((lead & 3) << 6 | (utf8[++i] & 0x3f));
    } else {
      throw Fault{"bytes that hold more than bytes"};
    }
  }
  return bytes;
}

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
  Value value(const Latin1Text& text) const { return Bytes{decode_latin1(heap_.text(text))}; }
  Value value(const RawBytes& bytes) const { return Bytes{std::string(heap_.text(bytes))}; }
  Value value(const TensorRef& tensor) const { return heap_.tensors[tensor.index]; }
  Value value(const StorageRef&) const { throw Fault{"a storage where a value should be"}; }
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
    for (size_t i = 0; i + 1 < items.size(); i += 2) dict.set(key(items[i]), build(items[i + 1]));
    return dict;
  }
  Key key(const Item& item) const {
    if (const auto* text = std::get_if<Text>(&item)) return std::string(heap_.text(*text));
    if (const auto* number = std::get_if<int64_t>(&item)) return *number;
    if (const auto* boolean = std::get_if<bool>(&item)) return int64_t{*boolean};  // equal and one key in Python
    throw Fault{"a dict whose keys are neither strings nor whole numbers"};
  }

  const Heap& heap_;
};

}  // namespace

Value to_value(const Heap& heap, const Item& item, const ValueBounds& bounds) {
  Measure(heap, bounds).of(item);
  return Builder(heap).build(item);
}

}  // namespace lockstep::checkpoint
