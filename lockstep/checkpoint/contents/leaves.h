// The leaves of a checkpoint's tree: its tensors and plain values, each with the keys that lead to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

struct Leaf {
  std::vector<std::string> keys;  // of dicts, and the numbers of list items
  const Value* value = nullptr;   // no list, tuple or dict; borrowed from the tree

  std::string path() const;  // the keys joined by "/"
};

// Returns the leaves in the file's order. Empty lists and dicts have none.
std::vector<Leaf> leaves_of(const Value& tree);

// Calls `visit` for each leaf with its path, without collecting them.
void for_each_leaf(const Value& tree, const std::function<void(const std::string& path, const Value& value)>& visit);

// A choice of leaves by their paths: all of them, those whose path begins with a text, or, where the text has a * or a
// ?, those whose whole path matches it (* stands for any letters, slashes included, ? for one).
class PathChoice {
 public:
  PathChoice() = default;
  explicit PathChoice(std::string pattern) : pattern_(std::move(pattern)) {}

  bool takes(const std::string& path) const;
  const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
};

}  // namespace lockstep::checkpoint
