#include "lockstep/checkpoint/contents/tree_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "lockstep/base/shown.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/contents/statistics.h"
#include "lockstep/checkpoint/formats/dtype.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kMostListed = 100;  // bytes of a plain value, or of a list of them, on its line

enum Column { kName, kDtype, kShape, kBytes, kMin, kMean, kMax, kDeviation, kHash, kColumns };
using Cells = std::array<std::string, kColumns>;
const Cells kHead = {"", "dtype", "shape", "bytes", "min", "mean", "max", "std", "sha256"};

struct Row {
  Cells cells;
  std::string rest = {};  // behind the cells
  bool is_tensor = false;
};

struct Total {
  uint64_t tensors = 0, elements = 0, bytes = 0, nan = 0, inf = 0;

  void add(const at::Tensor& tensor, const Statistics& found) {
    ++tensors;
    elements += static_cast<uint64_t>(tensor.numel());
    bytes += tensor.nbytes();
    nan += static_cast<uint64_t>(found.nan);
    inf += static_cast<uint64_t>(found.inf);
  }
  std::string text() const {
    return cat(grouped(tensors), tensors == 1 ? " tensor, " : " tensors, ", grouped(elements), " parameters, ",
               human_bytes(bytes), nan == 0 ? "" : cat(", ", grouped(nan), " NaN"),
               inf == 0 ? "" : cat(", ", grouped(inf), " Inf"));
  }
};

std::string short_number(long double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4Lg", value);
  return text;
}

std::string shape_text(at::IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes) text += cat(text.empty() ? "" : ", ", size);
  return '[' + text + ']';
}

bool is_plain(const Value& value) {
  return value.get_if<at::Tensor>() == nullptr && value.get_if<Dict>() == nullptr && value.items() == nullptr;
}

// nlohmann refuses text that is no UTF-8.
std::string plain_text(const Value& value) {
  return shown(plain_json(value).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string cut(std::string text) {
  if (text.size() <= kMostListed) return text;
  size_t end = kMostListed;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + " …";
}

// "[0.9, 0.999]".
std::string list_text(const Value& list) {
  std::string text;
  for (const Value& item : *list.items()) {
    if (text.size() > kMostListed) break;
    text += cat(text.empty() ? "" : ", ", plain_text(item));
  }
  const bool is_tuple = list.get_if<Tuple>() != nullptr;
  return cat(is_tuple ? '(' : '[', cut(text), is_tuple ? ')' : ']');
}

bool stands_on_one_line(const Value& value) {
  const List* items = value.items();
  return items != nullptr && !items->empty() && std::all_of(items->begin(), items->end(), is_plain);
}

class Tree {
 public:
  explicit Tree(const PathChoice& only) : only_(only) {}

  void visit(const Value& value, const std::string& name, const std::string& path, size_t depth) {
    const size_t before = rows_.size();
    if (is_plain(value) || stands_on_one_line(value)) return add_plain(value, name, path, depth);
    if (const auto* tensor = value.get_if<at::Tensor>()) return add_tensor(*tensor, name, path, depth);
    if (depth > 0) add(name, depth);
    if (const auto* dict = value.get_if<Dict>()) {
      for (const auto& [key, item] : *dict) visit_item(item, key_text(key), path, depth);
    } else if (const List* items = value.items()) {
      for (size_t i = 0; i < items->size(); ++i) visit_item((*items)[i], std::to_string(i), path, depth);
    }
    if (rows_.size() == before + (depth > 0 ? 1 : 0)) rows_.resize(before);  // nothing of it was chosen
  }

  std::string text() const {
    if (rows_.empty()) return "";
    std::vector<Row> rows = rows_;
    if (total_.tensors > 0) rows.insert(rows.begin(), {.cells = kHead, .is_tensor = true});
    std::array<size_t, kColumns> widths{};
    for (const Row& row : rows) {
      for (size_t i = 0; i < kColumns; ++i) {
        if (i == kName || row.is_tensor) widths[i] = std::max(widths[i], row.cells[i].size());
      }
    }
    std::string text;
    for (const Row& row : rows) text += line_of(row, widths);
    if (total_.tensors == 0) return text;
    text += '\n';
    if (parts_.size() > 1) {
      for (const auto& [name, part] : parts_) text += cat(name, ": ", part.text(), '\n');
    }
    return text + cat("total: ", total_.text(), '\n');
  }

  // What a top-level key holds is a part.
  void begin_part(const std::string& name) { parts_.emplace_back(name, Total()); }
  void end_part() {
    if (parts_.back().second.tensors == 0) parts_.pop_back();
  }

 private:
  void visit_item(const Value& item, const std::string& key, const std::string& path, size_t depth) {
    if (depth == 0 && !is_plain(item) && item.get_if<at::Tensor>() == nullptr) {
      begin_part(shown(key));
      visit(item, key, key, 1);
      return end_part();
    }
    visit(item, key, path.empty() ? key : path + "/" + key, depth + 1);
  }

  Row& add(const std::string& name, size_t depth) {
    Row row;
    row.cells[kName] = std::string(2 * (depth == 0 ? 0 : depth - 1), ' ') + shown(name);
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  void add_plain(const Value& value, const std::string& name, const std::string& path, size_t depth) {
    if (!only_.takes(path)) return;
    add(name, depth).rest = value.items() != nullptr ? list_text(value) : cut(plain_text(value));
  }

  void add_tensor(const at::Tensor& tensor, const std::string& name, const std::string& path, size_t depth) {
    if (!only_.takes(path)) return;
    const Statistics found = statistics_of(tensor);
    total_.add(tensor, found);
    if (!parts_.empty() && depth > 1) parts_.back().second.add(tensor, found);
    Row& row = add(name, depth);
    row.is_tensor = true;
    row.cells[kDtype] = dtype_name(tensor.scalar_type());
    row.cells[kShape] = shape_text(tensor.sizes());
    row.cells[kBytes] = human_bytes(tensor.nbytes());
    if (found.finite > 0) {
      row.cells[kMin] = short_number(found.min);
      row.cells[kMean] = short_number(found.mean);
      row.cells[kMax] = short_number(found.max);
    }
    if (!std::isnan(found.deviation)) row.cells[kDeviation] = short_number(found.deviation);
    row.cells[kHash] = tensor_sha256(tensor).substr(0, 12);
    if (found.nan > 0) row.rest += cat("  ", grouped(static_cast<uint64_t>(found.nan)), " NaN");
    if (found.inf > 0) row.rest += cat("  ", grouped(static_cast<uint64_t>(found.inf)), " Inf");
  }

  static std::string line_of(const Row& row, const std::array<size_t, kColumns>& widths) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string& cell = row.cells[i];
      if (i > 0 && !row.is_tensor) break;
      const std::string padding(widths[i] - std::min(widths[i], cell.size()), ' ');
      const bool is_number = i >= kBytes && i <= kDeviation;
      line += cat(i == 0 ? "" : "  ", is_number ? padding + cell : cell + padding);
    }
    line += (row.rest.empty() || row.is_tensor ? "" : "  ") + row.rest;
    return line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }

  const PathChoice& only_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, Total>> parts_;
  Total total_;
};

}  // namespace

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string tree_text(const Value& value, const PathChoice& only) {
  Tree tree(only);
  tree.visit(value, "", "", 0);
  return tree.text();
}

}  // namespace lockstep::checkpoint
