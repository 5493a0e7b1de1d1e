#include "lockstep/checkpoint/compare_text.h"

#include <algorithm>
#include <array>

#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/contents/leaves.h"
#include "lockstep/checkpoint/formats/dtype.h"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Difference::Kind;

constexpr size_t kMostBytes = 60;  // of a plain value
constexpr std::array<const char*, 6> kKinds = {"only_in_a", "only_in_b", "kind", "dtype", "shape", "values"};

std::string list_of(at::IntArrayRef numbers) {
  std::string text;
  for (const int64_t number : numbers) text += cat(text.empty() ? "" : ", ", number);
  return '[' + text + ']';
}

std::string counted(int64_t count, const char* what) { return cat(count, ' ', what, count == 1 ? "" : "s"); }

std::string holds(const Value& container) {
  int64_t tensors = 0, values = 0;
  for_each_leaf(container, [&](const std::string&, const Value& leaf) { ++(leaf.is_tensor() ? tensors : values); });
  if (tensors + values == 0) return cat(container.kind(), " that is empty");
  return cat(container.kind(), " of ", tensors > 0 ? counted(tensors, "tensor") : "",
             tensors > 0 && values > 0 ? " and " : "", values > 0 ? counted(values, "value") : "");
}

std::string measured(const Difference& difference) {
  if (difference.elements == 0) return "";
  std::string text = cat(difference.differing, " of ", counted(difference.elements, "element"), " differ");
  if (difference.differing == 0) return text;
  const LargestDifference& absolute = *difference.absolute;
  const LargestDifference& relative = *difference.relative;
  text += cat(", by at most ", absolute.difference, " at ", list_of(absolute.index), " (", write_number(absolute.a),
              " | ", write_number(absolute.b), "), relatively ", relative.difference);
  return relative.index == absolute.index ? text : cat(text, " at ", list_of(relative.index));
}

Json json_of(const LargestDifference& largest) {
  return {{"difference", plain_json(largest.difference)},
          {"index", largest.index},
          {"a", plain_json(largest.a)},
          {"b", plain_json(largest.b)}};
}

Json json_of(const Difference& difference) {
  Json json = {{"path", difference.path}, {"kind", kKinds[static_cast<size_t>(difference.kind)]}};
  if (difference.kind != Kind::kOnlyInB) json["a"] = difference.a;
  if (difference.kind != Kind::kOnlyInA) json["b"] = difference.b;
  if (difference.elements > 0) json.update({{"elements", difference.elements}, {"differing", difference.differing}});
  if (difference.absolute) json["absolute"] = json_of(*difference.absolute);
  if (difference.relative) json["relative"] = json_of(*difference.relative);
  return json;
}

}  // namespace

std::string text_of(const at::Tensor& tensor) {
  return cat(dtype_name(tensor.scalar_type()), ' ', list_of(tensor.sizes()));
}

std::string text_of(const Value& value) {
  if (const auto* tensor = value.get_if<at::Tensor>()) return text_of(*tensor);
  if (value.get_if<Dict>() != nullptr || value.items() != nullptr) return holds(value);
  std::string text = shown(plain_json(value).dump(-1, ' ', false, Json::error_handler_t::replace));
  if (text.size() <= kMostBytes) return text;
  size_t end = kMostBytes;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + " …";
}

std::string text_of(const Difference& difference) {
  const std::string name = shown(difference.path.empty() ? "all of it" : difference.path) + "  ";
  switch (difference.kind) {
    case Kind::kOnlyInA:
      return cat(name, "only in A: ", difference.a);
    case Kind::kOnlyInB:
      return cat(name, "only in B: ", difference.b);
    case Kind::kKind:
    case Kind::kShape:
      return cat(name, difference.a, " | ", difference.b);
    case Kind::kDtype:
      return cat(name, difference.a, " | ", difference.b, difference.elements > 0 ? ": " : "", measured(difference));
    case Kind::kValues:
      if (difference.elements == 0) return cat(name, difference.a, " | ", difference.b);
      return cat(name, difference.a, ": ", measured(difference));
  }
  return name;
}

std::string text_of(const Comparison& comparison, size_t most) {
  std::string text;
  const size_t count = comparison.differences.size(), shown_ones = std::min(most, count);
  for (size_t i = 0; i < shown_ones; ++i) text += cat("  ", text_of(comparison.differences[i]), '\n');
  if (count > shown_ones) text += cat("  and ", count - shown_ones, " more\n");
  return text;
}

nlohmann::ordered_json json_of(const Comparison& comparison, size_t most) {
  Json differences = Json::array();
  for (size_t i = 0; i < std::min(most, comparison.differences.size()); ++i) {
    differences.push_back(json_of(comparison.differences[i]));
  }
  return {{"tensors", comparison.tensors},
          {"values", comparison.values},
          {"differing", comparison.differences.size()},
          {"differences", std::move(differences)}};
}

}  // namespace lockstep::checkpoint
