#include "lockstep/rendezvous/place/slurm_lists.h"

#include <algorithm>
#include <string_view>

#include "lockstep/rendezvous/place/address.h"

namespace lockstep::rendezvous {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMostNodes = 1 << 17;

// Splits at commas that stand outside of brackets. Nothing if brackets don't match, or for an empty item.
std::optional<Names> split(const std::string& list) {
  Names items(1);
  int depth = 0;
  for (const char each : list) {
    depth += each == '[' ? 1 : each == ']' ? -1 : 0;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (each == ',' && depth == 0) {
      items.emplace_back();
    } else {
      items.back() += each;
    }
  }
  const bool has_empty = std::any_of(items.begin(), items.end(), [](const auto& item) { return item.empty(); });
  return depth == 0 && !has_empty ? std::optional(items) : std::nullopt;
}

// "01-04,07" without its brackets: 01, 02, 03, 04, 07.
std::optional<Names> expand_range(const std::string& text) {
  Names out;
  const auto items = split(text);
  if (!items) return std::nullopt;
  for (const auto& item : *items) {
    const size_t dash = item.find('-');
    const std::string first = item.substr(0, dash), last = dash == std::string::npos ? first : item.substr(dash + 1);
    const auto low = parse_number(first), high = parse_number(last);
    if (!low || !high || *low < 0 || *high < *low || static_cast<size_t>(*high - *low) >= kMostNodes)
      return std::nullopt;
    for (int64_t number = *low; number <= *high; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      out.push_back(std::move(digits));
    }
  }
  return out;
}

std::optional<Names> expand_name(const std::string& name) {
  Names out = {""};
  for (size_t at = 0; at < name.size();) {
    const size_t open = std::min(name.find('[', at), name.size());
    for (auto& each : out) each += name.substr(at, open - at);
    if (open == name.size()) break;
    const size_t close = name.find(']', open);
    const auto numbers = expand_range(name.substr(open + 1, close - open - 1));
    if (!numbers || out.size() * numbers->size() > kMostNodes) return std::nullopt;
    Names longer;
    for (const auto& each : out) {
      for (const auto& number : *numbers) longer.push_back(each + number);
    }
    out = std::move(longer);
    at = close + 1;
  }
  return out;
}

}  // namespace

std::optional<std::vector<int>> expand_tasks(const std::string& list) {
  constexpr int64_t kMostTasks = 1 << 20;
  std::vector<int> out;
  const auto items = split(list);
  if (!items) return std::nullopt;
  for (const auto& item : *items) {
    const size_t times = item.find("(x");
    const auto tasks = parse_number(std::string_view(item).substr(0, times));
    std::optional<int64_t> nodes = 1;
    if (times != std::string::npos) {
      nodes = item.back() == ')' ? parse_number(std::string_view(item).substr(times + 2, item.size() - times - 3))
                                 : std::nullopt;
    }
    if (!tasks || !nodes || *tasks < 1 || *tasks > kMostTasks || *nodes < 1 ||
        out.size() + static_cast<size_t>(*nodes) > kMostNodes) {
      return std::nullopt;
    }
    out.insert(out.end(), static_cast<size_t>(*nodes), static_cast<int>(*tasks));
  }
  return out;
}

std::optional<std::vector<std::string>> expand_nodes(const std::string& list) {
  Names out;
  const auto items = split(list);
  if (!items) return std::nullopt;
  for (const auto& item : *items) {
    const auto names = expand_name(item);
    if (!names || out.size() + names->size() > kMostNodes) return std::nullopt;
    out.insert(out.end(), names->begin(), names->end());
  }
  return out;
}

}  // namespace lockstep::rendezvous
