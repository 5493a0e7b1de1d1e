#include "lockstep/checkpoint/contents/leaves.h"

#include <fnmatch.h>

namespace lockstep::checkpoint {
namespace {

std::string join(const std::string& path, const std::string& name) { return path.empty() ? name : path + "/" + name; }

// Calls step(key, item) for what a list, tuple or dict holds. False for a leaf.
template <typename Step>
bool for_each_item(const Value& value, const Step& step) {
  if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : *dict) step(key_text(key), item);
    return true;
  }
  const List* items = value.items();
  if (items == nullptr) return false;
  for (size_t i = 0; i < items->size(); ++i) step(std::to_string(i), (*items)[i]);
  return true;
}

void collect(const Value& value, std::vector<std::string>& keys, std::vector<Leaf>& leaves) {
  const bool has_items = for_each_item(value, [&](const std::string& key, const Value& item) {
    keys.push_back(key);
    collect(item, keys, leaves);
    keys.pop_back();
  });
  if (!has_items) leaves.push_back({keys, &value});
}

void walk(const Value& value, const std::string& path,
          const std::function<void(const std::string& path, const Value& value)>& visit) {
  const bool has_items =
      for_each_item(value, [&](const std::string& key, const Value& item) { walk(item, join(path, key), visit); });
  if (!has_items) visit(path, value);
}

}  // namespace

std::string Leaf::path() const {
  std::string path;
  for (const std::string& key : keys) path = join(path, key);
  return path;
}

std::vector<Leaf> leaves_of(const Value& tree) {
  std::vector<std::string> keys;
  std::vector<Leaf> leaves;
  collect(tree, keys, leaves);
  return leaves;
}

void for_each_leaf(const Value& tree, const std::function<void(const std::string& path, const Value& value)>& visit) {
  walk(tree, "", visit);
}

bool PathChoice::takes(const std::string& path) const {
  if (pattern_.find_first_of("*?") == std::string::npos) return path.starts_with(pattern_);
  return fnmatch(pattern_.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace lockstep::checkpoint
