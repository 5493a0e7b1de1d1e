#include "lockstep/checkpoint/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/checkpoint/compare_text.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/tensor_difference.h"

namespace lockstep::checkpoint {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Kind = Difference::Kind;

class Walk {
 public:
  Comparison found;

  void compare(const Value& a, const Value& b, const std::string& path) {
    const auto* left = a.get_if<at::Tensor>();
    const auto* right = b.get_if<at::Tensor>();
    if (left != nullptr && right != nullptr) return compare_tensors(*left, *right, path);
    if (a.get_if<Dict>() != nullptr && b.get_if<Dict>() != nullptr) {
      return compare_dicts(*a.get_if<Dict>(), *b.get_if<Dict>(), path);
    }
    if (a.items() != nullptr && b.items() != nullptr) return compare_lists(*a.items(), *b.items(), path);
    if (a.content().index() != b.content().index()) return add(Kind::kKind, path, text_of(a), text_of(b));
    compare_plain(a, b, path);
  }

 private:
  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "/" + key;
  }

  Difference& emplace(Kind kind, const std::string& path, std::string a, std::string b) {
    found.differences.push_back({.kind = kind, .path = path, .a = std::move(a), .b = std::move(b)});
    return found.differences.back();
  }
  void add(Kind kind, const std::string& path, std::string a, std::string b) {
    emplace(kind, path, std::move(a), std::move(b));
  }

  void compare_dicts(const Dict& a, const Dict& b, const std::string& path) {
    for (const auto& [key, item] : a) {
      const std::string at = join(path, key_text(key));
      const Value* other = b.find(key);
      if (other == nullptr) {
        add(Kind::kOnlyInA, at, text_of(item), "");
      } else {
        compare(item, *other, at);
      }
    }
    for (const auto& [key, item] : b) {
      if (!a.contains(key)) add(Kind::kOnlyInB, join(path, key_text(key)), "", text_of(item));
    }
  }

  void compare_lists(const List& a, const List& b, const std::string& path) {
    const size_t common = std::min(a.size(), b.size());
    for (size_t i = 0; i < common; ++i) compare(a[i], b[i], join(path, std::to_string(i)));
    for (size_t i = common; i < a.size(); ++i) add(Kind::kOnlyInA, join(path, std::to_string(i)), text_of(a[i]), "");
    for (size_t i = common; i < b.size(); ++i) add(Kind::kOnlyInB, join(path, std::to_string(i)), "", text_of(b[i]));
  }

  void compare_tensors(const at::Tensor& a, const at::Tensor& b, const std::string& path) {
    ++found.tensors;
    if (a.sizes() != b.sizes()) return add(Kind::kShape, path, text_of(a), text_of(b));
    const bool same_type = a.scalar_type() == b.scalar_type();
    TensorDifference difference = difference_of(a, b);
    if (same_type && difference.differing == 0) return;
    Difference& added = emplace(same_type ? Kind::kValues : Kind::kDtype, path, text_of(a), text_of(b));
    added.elements = a.numel();
    added.differing = difference.differing;
    added.absolute = std::move(difference.absolute);
    added.relative = std::move(difference.relative);
  }

  void compare_plain(const Value& a, const Value& b, const std::string& path) {
    ++found.values;
    if (plain_json(a) == plain_json(b)) return;
    Difference& added = emplace(Kind::kValues, path, text_of(a), text_of(b));
    const auto number = [](const Value& value) {
      if (const auto* whole = value.get_if<int64_t>()) return static_cast<double>(*whole);
      const auto* real = value.get_if<double>();
      return real == nullptr ? kInfinity : *real;
    };
    const double left = number(a), right = number(b), distance = std::abs(left - right);
    if (std::isfinite(distance)) added.absolute = {.difference = distance, .index = {}, .a = left, .b = right};
  }
};

}  // namespace

double Difference::size() const { return kind != Kind::kValues || !absolute ? kInfinity : absolute->difference; }

Comparison compare(const Value& a, const Value& b) {
  Walk walk;
  walk.compare(a, b, "");
  std::stable_sort(walk.found.differences.begin(), walk.found.differences.end(),
                   [](const Difference& x, const Difference& y) { return x.size() > y.size(); });
  return std::move(walk.found);
}

}  // namespace lockstep::checkpoint
