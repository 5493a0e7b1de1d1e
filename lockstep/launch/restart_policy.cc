#include "lockstep/launch/restart_policy.h"

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"

namespace lockstep::launch {

bool RestartPolicy::would_repeat(const RankOutcome& root) const {
  constexpr std::array kLasting = {ConfigError::kExitCode, DataError::kExitCode, IoError::kExitCode};
  const int code = root.status.exit_code();
  const bool is_ours = own_workers_ || (!root.error.empty() && code != IoError::kExitCode);
  return is_ours && root.status.signal == 0 && std::find(kLasting.begin(), kLasting.end(), code) != kLasting.end();
}

std::optional<RestartPolicy::Verdict> RestartPolicy::next_after_taken_port() {
  if (++taken_ports_ > kMostTakenPorts) return std::nullopt;
  return Verdict{.again = true, .text = "with another port, which counts as no restart"};
}

RestartPolicy::Verdict RestartPolicy::next(const RankOutcome& root, int64_t progress) {
  taken_ports_ = 0;
  if (max_restarts_ == 0 || is_plain_mistake(root)) return {};
  if (would_repeat(root)) return {.text = "none: another attempt would end in the same way"};
  const bool further = progress < 0 || progress > furthest_;
  without_progress_ = further ? 0 : without_progress_ + 1;
  furthest_ = std::max(furthest_, progress);
  if (restarts_ == max_restarts_) return {.text = cat("all ", max_restarts_, " are used up")};
  if (without_progress_ == kMostWithoutProgress) {
    return {.text = cat("none: ", kMostWithoutProgress, " attempts in a row got no further than step ", furthest_)};
  }
  ++restarts_;
  return {.again = true, .text = cat("restart ", restarts_, " of ", max_restarts_)};
}

}  // namespace lockstep::launch
