// A checkpoint's content: a tree of dicts, lists, tensors and plain values, as torch.save writes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

class Value;
using List = std::vector<Value>;

// A Python tuple: it is written as one, and otherwise behaves like a list.
struct Tuple {
  List items;
};

struct Bytes {
  std::string data;
};

// What a file holds of a class that is not read, and nothing of its content: only readers that were asked to ignore
// unknown classes make one, and no writer takes it.
struct Opaque {
  std::string name;  // "argparse.Namespace"
};

// A dict's key: text, or a number (an optimizer's state numbers its parameters).
using Key = std::variant<std::string, int64_t>;
std::string key_text(const Key& key);

// A dict that keeps the order of insertion, as Python's do. Lookup takes constant time, whoever chose the keys: their
// hash has a secret of the process.
class Dict {
 public:
  struct Entry;

  Dict();
  Dict(std::initializer_list<Entry> entries);  // a later entry replaces an earlier one of the same key
  Dict(const Dict&);
  Dict(Dict&&) noexcept;
  Dict& operator=(const Dict&);
  Dict& operator=(Dict&&) noexcept;
  ~Dict();

  void set(Key key, Value value);
  const Value* find(const Key& key) const;  // nullptr if there is none; valid until the next set()
  bool contains(const Key& key) const { return find(key) != nullptr; }

  size_t size() const;
  bool empty() const;
  std::vector<Entry>::const_iterator begin() const;
  std::vector<Entry>::const_iterator end() const;

  void reserve(size_t entries);  // allocates what so many will need
  // The bytes that a dict of so many entries allocates if it was reserved, without what the entries' own content takes.
  static uint64_t bytes_for(size_t entries);

 private:
  struct Table;  // behind a pointer, which keeps Values small
  std::unique_ptr<Table> table_;
};

// One node of the tree. A copy is deep, except that tensors share their memory. Values are made from plain ones:
//   Dict{{"epoch", 4}, {"lr", 0.1}, {"betas", Tuple{{0.9, 0.999}}}, {"weight", tensor}}
class Value {
 public:
  using Content =
      std::variant<std::monostate, bool, int64_t, double, std::string, Bytes, at::Tensor, List, Tuple, Dict, Opaque>;

  Value();  // None
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  Value(std::same_as<bool> auto boolean) : Value(Boolean{boolean}) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Value(Integer number) : Value(Whole{static_cast<int64_t>(number)}) {
    if (!std::in_range<int64_t>(number)) throw BugError("checkpoints hold whole numbers below 2^63, not ", number);
  }
  Value(std::floating_point auto number) : Value(Real{static_cast<double>(number)}) {}
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  Value(Bytes bytes);
  Value(at::Tensor tensor);  // shares the tensor's memory
  Value(List items);
  Value(Tuple tuple);
  Value(Dict dict);
  Value(Opaque opaque);

  const Content& content() const { return content_; }
  bool is_none() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_tensor() const { return std::holds_alternative<at::Tensor>(content_); }
  // The content if it is a T (bool, int64_t, double, std::string, Bytes, at::Tensor, List, Tuple, Dict, Opaque), or
  // nullptr.
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&content_);
  }
  template <typename T>
  T* get_if() {
    return std::get_if<T>(&content_);
  }
  // The items of a list or tuple, or nullptr.
  const List* items() const;
  // "a dict", "a number", "a tensor": for messages.
  std::string_view kind() const;

 private:
  // What a template makes of its number. The constructors are compiled once: a variant costs every program that
  // includes this header half a second otherwise.
  struct Boolean {
    bool value;
  };
  struct Whole {
    int64_t value;
  };
  struct Real {
    double value;
  };
  explicit Value(Boolean boolean);
  explicit Value(Whole number);
  explicit Value(Real number);

  Content content_;
};

struct Dict::Entry {
  Key key;
  Value value;
};

}  // namespace lockstep::checkpoint
