#include "lockstep/checkpoint/formats/value.h"

#include <array>

namespace lockstep::checkpoint {

std::string key_text(const Key& key) {
  const auto* text = std::get_if<std::string>(&key);
  return text ? *text : std::to_string(std::get<int64_t>(key));
}

Dict::Dict() = default;
Dict::Dict(const Dict&) = default;
Dict::Dict(Dict&&) noexcept = default;
Dict& Dict::operator=(const Dict&) = default;
Dict& Dict::operator=(Dict&&) noexcept = default;
Dict::~Dict() = default;

Dict::Dict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.key, entry.value);
}

void Dict::set(Key key, Value value) {
  const auto [position, is_new] = positions_.try_emplace(key, entries_.size());
  if (is_new) {
    entries_.push_back({std::move(key), std::move(value)});
  } else {
    entries_[position->second].value = std::move(value);
  }
}

const Value* Dict::find(const Key& key) const {
  const auto position = positions_.find(key);
  return position == positions_.end() ? nullptr : &entries_[position->second].value;
}

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value::Value(Boolean boolean) : content_(boolean.value) {}
Value::Value(Whole number) : content_(number.value) {}
Value::Value(Real number) : content_(number.value) {}
Value::Value(std::string text) : content_(std::move(text)) {}
Value::Value(std::string_view text) : content_(std::string(text)) {}
Value::Value(const char* text) : content_(std::string(text)) {}
Value::Value(Bytes bytes) : content_(std::move(bytes)) {}
Value::Value(at::Tensor tensor) : content_(std::move(tensor)) {}
Value::Value(List items) : content_(std::move(items)) {}
Value::Value(Tuple tuple) : content_(std::move(tuple)) {}
Value::Value(Dict dict) : content_(std::move(dict)) {}

const List* Value::items() const {
  if (const auto* list = get_if<List>()) return list;
  const auto* tuple = get_if<Tuple>();
  return tuple ? &tuple->items : nullptr;
}

std::string_view Value::kind() const {
  static constexpr std::array<std::string_view, std::variant_size_v<Content>> kKinds = {
      "None",  "true or false", "a whole number", "a number", "a string",
      "bytes", "a tensor",      "a list",         "a tuple",  "a dict"};
  return kKinds[content_.index()];
}

}  // namespace lockstep::checkpoint
