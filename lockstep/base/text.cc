#include "lockstep/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

#include "lockstep/base/plain_nan.h"

namespace lockstep {

std::string write_number(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), plain_nan(value)).ptr;
  return {text.data(), end};
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return cat(bytes, bytes == 1 ? " byte" : " bytes");
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1024; value >= 1023.95 && unit + 1 < std::size(units); value /= 1024) ++unit;
  std::ostringstream out;
  out.precision(value < 9.95 ? 2 : value < 999.5 ? 3 : 4);
  out << value << ' ' << units[unit];
  return out.str();
}

std::string ranges(std::span<const int> ascending) {
  if (ascending.empty()) return "none";
  std::string out;
  for (size_t first = 0; first < ascending.size();) {
    size_t last = first;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!out.empty()) out += ", ";
    out += std::to_string(ascending[first]);
    if (last > first) out += '-' + std::to_string(ascending[last]);
    first = last + 1;
  }
  return out;
}

std::string named_ranks(std::span<const int> ascending) {
  return cat(ascending.size() == 1 ? "rank " : "ranks ", ranges(ascending));
}

namespace {

// Levenshtein's distance, by rows.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace lockstep
