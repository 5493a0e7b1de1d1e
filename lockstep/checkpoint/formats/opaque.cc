#include "lockstep/checkpoint/formats/opaque.h"

#include <utility>

namespace lockstep::checkpoint {
namespace {

bool is_opaque(const Value& value) { return value.get_if<Opaque>() != nullptr; }

void collect(const Value& value, const std::string& path, std::vector<std::string>& paths) {
  if (is_opaque(value)) paths.push_back(path);
  const std::string prefix = path.empty() ? "" : path + "/";
  if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : *dict) collect(item, prefix + key_text(key), paths);
  } else if (const List* items = value.items()) {
    for (size_t i = 0; i < items->size(); ++i) collect((*items)[i], prefix + std::to_string(i), paths);
  }
}

}  // namespace

std::vector<std::string> opaque_paths(const Value& value) {
  std::vector<std::string> paths;
  collect(value, "", paths);
  return paths;
}

Value without_opaque(const Value& value) {
  if (is_opaque(value)) return {};
  if (const auto* dict = value.get_if<Dict>()) {
    Dict rest;
    for (const auto& [key, item] : *dict) {
      if (!is_opaque(item)) rest.set(key, without_opaque(item));
    }
    return rest;
  }
  const List* items = value.items();
  if (items == nullptr) return value;
  List rest;
  for (const Value& item : *items) rest.push_back(without_opaque(item));
  return value.get_if<Tuple>() != nullptr ? Value(Tuple{std::move(rest)}) : Value(std::move(rest));
}

}  // namespace lockstep::checkpoint
