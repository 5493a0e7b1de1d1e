#include "lockstep/launch/watch/straggler_watch.h"

#include <algorithm>

namespace lockstep::launch {
namespace {

constexpr double kSecond = 1e9;

double median_without(std::vector<double> values, size_t left_out) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(left_out));
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void StragglerWatch::begin(std::span<const RankSample> ranks, int64_t now_ns) {
  first_.assign(ranks.begin(), ranks.end());
  begun_ns_ = now_ns;
}

std::optional<StragglerWatch::Straggler> StragglerWatch::look(std::span<const RankSample> ranks, int64_t now_ns) {
  const bool all_train = ranks.size() > 1 && std::all_of(ranks.begin(), ranks.end(), [](const auto& each) {
                           return each.running && each.step > 0;
                         });
  if (!all_train) {
    begun_ns_ = 0;
    return std::nullopt;
  }
  if (begun_ns_ == 0) begin(ranks, now_ns);
  const auto window = static_cast<double>(now_ns - begun_ns_);
  uint64_t fewest = UINT64_MAX;
  for (size_t i = 0; i < ranks.size(); ++i) fewest = std::min(fewest, ranks[i].step - first_[i].step);
  if (fewest < kSteps || now_ns - begun_ns_ < kWindowNs) return std::nullopt;

  std::vector<double> own;  // nanoseconds a step
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto waited = static_cast<double>(ranks[i].reduce_wait_ns - first_[i].reduce_wait_ns);
    own.push_back(std::max(0.0, window - waited) / static_cast<double>(ranks[i].step - first_[i].step));
  }
  const auto slowest = static_cast<size_t>(std::max_element(own.begin(), own.end()) - own.begin());
  const double others = median_without(own, slowest);
  const bool lags = own[slowest] > kFactor * others;
  windows_ = !lags ? 0 : static_cast<int>(slowest) == suspect_ ? windows_ + 1 : 1;
  suspect_ = lags ? static_cast<int>(slowest) : -1;
  const RankSample first = first_[slowest];
  begin(ranks, now_ns);
  if (windows_ != kWindows) return std::nullopt;
  const RankSample& last = ranks[slowest];
  return Straggler{.rank = suspect_,
                   .step_s = own[slowest] / kSecond,
                   .others_s = others / kSecond,
                   .data_share = static_cast<double>(last.data_wait_ns - first.data_wait_ns) / window,
                   .wait_share = static_cast<double>(last.reduce_wait_ns - first.reduce_wait_ns) / window};
}

}  // namespace lockstep::launch
