#include "lockstep/data/skipped_samples.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kMostNamed = 20;

// Three lines for each; names and reasons are of one line.
std::string to_text(const std::vector<BadSample>& samples) {
  std::string text;
  for (const BadSample& each : samples) text += cat(each.index, '\n', each.name, '\n', each.why, '\n');
  return text;
}

void add_from(const std::string& text, std::vector<BadSample>& samples) {
  std::istringstream lines(text);
  for (std::string index, name, why; std::getline(lines, index);) {
    std::getline(lines, name);
    std::getline(lines, why);
    samples.push_back({name, why, std::stoll(index)});
  }
}

bool holds(const std::vector<BadSample>& samples, const BadSample& wanted) {
  return std::any_of(samples.begin(), samples.end(),
                     [&](const BadSample& each) { return each.index == wanted.index && each.name == wanted.name; });
}

// The newest ones first: they are what the limit was passed by.
std::string reasons(const std::vector<BadSample>& samples) {
  std::string text;
  for (size_t i = 0; i < std::min(kMostNamed, samples.size()); ++i) {
    text += cat(i == 0 ? "" : "; ", samples[samples.size() - 1 - i].why);
  }
  if (samples.size() > kMostNamed) text += cat("; and ", samples.size() - kMostNamed, " more");
  return text;
}

}  // namespace

SkippedSamples::SkippedSamples(int64_t most, Gather gather) : most_(most), gather_(std::move(gather)) {
  if (most < 1) throw ConfigError("skip-bad: ", most, " samples to pass over; 1 is the least");
}

std::vector<BadSample> SkippedSamples::add(const std::vector<BadSample>& own) {
  std::vector<BadSample> met, fresh;
  const std::string text = to_text(own);
  for (const std::string& theirs : gather_ ? gather_(text) : std::vector<std::string>{text}) add_from(theirs, met);
  for (const BadSample& each : met) {
    if (!holds(all_, each) && !holds(fresh, each)) fresh.push_back(each);
  }
  if (fresh.empty()) return fresh;
  std::vector<BadSample> together = all_;
  together.insert(together.end(), fresh.begin(), fresh.end());
  met_ = std::ssize(together);
  if (met_ > most_) {
    throw DataError(together.size(), " samples can't be read, and skip-bad passes over ", most_, ": ",
                    reasons(together), "; raise skip-bad, or begin a new run without them");
  }
  all_ = std::move(together);
  return fresh;
}

void SkippedSamples::restore(std::vector<BadSample> all) {
  if (std::ssize(all) > most_) {
    throw ConfigError("skip-bad: ", all.size(), " samples that can't be read were passed over, and ", most_,
                      " is the limit; raise it");
  }
  all_ = std::move(all);
}

std::string lines_of(const std::vector<BadSample>& samples) {
  std::string lines;
  for (const BadSample& each : samples) lines += each.why + '\n';
  return lines;
}

}  // namespace lockstep::data
