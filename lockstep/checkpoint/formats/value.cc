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
