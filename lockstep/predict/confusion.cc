#include "lockstep/predict/confusion.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/nn/predicted_classes.h"

namespace lockstep::predict {
namespace {

std::string name_of(int64_t label, const std::vector<std::string>& names) {
  const auto at = static_cast<size_t>(label);
  return at < names.size() ? names[at] : std::to_string(label);
}

// At most so many bytes, and no half of a character.
std::string cut(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end);
}

std::string whole_text(const at::Tensor& counts, const std::vector<std::string>& names) {
  constexpr int kWidth = 10;
  const int64_t classes = counts.size(0);
  size_t longest = 4;
  for (int64_t k = 0; k < classes; ++k) longest = std::max(longest, name_of(k, names).size());
  std::ostringstream text;
  text << "true classes by rows, predicted ones by columns:\n" << std::string(longest + 2, ' ');
  for (int64_t k = 0; k < classes; ++k) text << std::setw(kWidth) << cut(name_of(k, names), kWidth - 1);
  for (int64_t row = 0; row < classes; ++row) {
    text << "\n  " << std::left << std::setw(static_cast<int>(longest)) << name_of(row, names) << std::right;
    for (int64_t k = 0; k < classes; ++k) text << std::setw(kWidth) << counts[row][k].item<int64_t>();
  }
  return text.str() + '\n';
}

std::string pairs_text(const at::Tensor& counts, const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  std::vector<std::tuple<int64_t, int64_t, int64_t>> pairs;  // less its count, then the classes
  const auto* const all = counts.const_data_ptr<int64_t>();
  const int64_t classes = counts.size(0);
  for (int64_t k = 0; k < classes * classes; ++k) {
    if (all[k] > 0 && k / classes != k % classes) pairs.emplace_back(-all[k], k / classes, k % classes);
  }
  std::sort(pairs.begin(), pairs.end());
  std::string text = cat("of ", classes, " classes most often taken for another:", pairs.empty() ? " none\n" : "\n");
  for (size_t k = 0; k < std::min(kMost, pairs.size()); ++k) {
    const auto& [less, is, taken_for] = pairs[k];
    text += cat("  ", name_of(is, names), " for ", name_of(taken_for, names), ": ", -less, " of ",
                counts[is].sum().item<int64_t>(), '\n');
  }
  return text;
}

}  // namespace

void Confusion::add(const at::Tensor& scores, const at::Tensor& target) {
  const bool fits = scores.dim() >= 2 && target.scalar_type() == at::kLong && target.dim() == scores.dim() - 1 &&
                    target.size(0) == scores.size(0) && target.numel() * scores.size(1) == scores.numel();
  if (!fits) {
    throw ConfigError("--confusion: the network's outputs, ", scores.sizes(), ", are no scores of classes for targets ",
                      target.sizes());
  }
  const int64_t classes = nn::classes_of_outputs(scores.size(1));
  if (!counts_.defined()) counts_ = at::zeros({classes, classes}, at::kLong);
  const at::Tensor predicted = nn::predicted_classes(scores, 1).to(at::kCPU), is = target.to(at::kCPU);
  counts_ += (is * classes + predicted).flatten().bincount({}, classes * classes).reshape({classes, classes});
}

std::string confusion_text(const at::Tensor& counts, const std::vector<std::string>& names) {
  constexpr int64_t kMostShown = 12;
  return counts.size(0) <= kMostShown ? whole_text(counts, names) : pairs_text(counts, names);
}

nlohmann::json confusion_json(const at::Tensor& counts) {
  nlohmann::json rows = nlohmann::json::array();
  for (int64_t row = 0; row < counts.size(0); ++row) {
    const auto* const first = counts.const_data_ptr<int64_t>() + row * counts.size(1);
    rows.push_back(std::vector<int64_t>(first, first + counts.size(1)));
  }
  return rows;
}

}  // namespace lockstep::predict
