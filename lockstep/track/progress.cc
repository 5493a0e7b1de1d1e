#include "lockstep/track/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "lockstep/base/plain_nan.h"
#include "lockstep/base/text.h"

namespace lockstep::track {
namespace {

std::string fixed(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, plain_nan(value));
  return text.data();
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-:--";
  const auto total = static_cast<int64_t>(seconds + 0.5);
  const int64_t hours = total / 3600, minutes = total / 60 % 60;
  const std::string tail = cat(total % 60 < 10 ? ":0" : ":", total % 60);
  return hours > 0 ? cat(hours, minutes < 10 ? ":0" : ":", minutes, tail) : cat(minutes, tail);
}

// The fields of a line, in their order, and the order in which they are left out where room is short: from the middle
// on, so that the time that is left stays longest.
enum Field { kEpoch, kStep, kLoss, kLr, kSpeed, kLeft, kFields };
constexpr std::array kLeftOut = {kLr, kSpeed, kEpoch, kLoss, kStep};
constexpr size_t kBeforeTheBar = 2;  // the bar is worth more than the first two of these
constexpr int kLeastBar = 8, kMostBar = 30;

std::string join(const std::array<std::string, kFields>& fields) {
  std::string text;
  for (const auto& field : fields) {
    if (!field.empty()) text += cat(text.empty() ? "" : "  ", field);
  }
  return text;
}

std::array<std::string, kFields> fields_of(const ProgressState& state) {
  return {cat("epoch ", state.epoch, '/', state.epochs),
          cat("step ", state.step, '/', state.steps),
          cat("loss ", fixed("%.4f", state.loss)),
          cat("lr ", fixed("%.3g", state.lr)),
          cat(fixed("%.0f", state.samples_per_second), " samples/s"),
          cat("ETA ", state.seconds_left ? clock_text(*state.seconds_left) : "-:--")};
}

std::string bar(const ProgressState& state, int width) {
  const double share = state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0;
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * width);
  return cat('[', std::string(full, '#'), std::string(static_cast<size_t>(width) - full, '.'), "] ");
}

}  // namespace

std::string progress_text(const ProgressState& state) { return join(fields_of(state)); }

std::string progress_bar(const ProgressState& state, int columns) {
  auto fields = fields_of(state);
  const int room = std::max(0, columns - 1);  // a cursor behind the last column would move the line
  for (size_t left_out = 0;; ++left_out) {
    const std::string text = join(fields);
    const int width = static_cast<int>(text.size());
    const int beside = room - width - 3;  // brackets and a space
    if (left_out <= kBeforeTheBar && beside >= kLeastBar) return bar(state, std::min(beside, kMostBar)) + text;
    if (left_out >= kBeforeTheBar && width <= room) return text;
    if (left_out == kLeftOut.size()) return text.substr(0, static_cast<size_t>(room));
    fields[kLeftOut[left_out]].clear();
  }
}

void Progress::update(const ProgressState& state) {
  state_ = state;
  const double between = options_.terminal ? 0.1 : options_.seconds_between;
  if (static_cast<double>(monotonic_ns() - drawn_ns_) * 1e-9 >= between) draw();
}

void Progress::draw() {
  if (options_.quiet) return;
  drawn_ns_ = monotonic_ns();
  drawn_step_ = state_.step;
  if (options_.terminal) {
    const std::string text = progress_bar(state_, options_.columns());
    write_((bar_width_ > 0 ? rub_out() : "\r\033[K") + text);
    bar_width_ = static_cast<int>(text.size());
  } else {
    write_(progress_text(state_) + '\n');
  }
}

// A terminal that has become narrower shows the bar on several lines: the cursor is on the last of them.
std::string Progress::rub_out() const {
  const int above = (bar_width_ - 1) / std::max(1, options_.columns());
  return above > 0 ? cat("\r\033[", above, "A\033[J") : "\r\033[K";
}

void Progress::line(const std::string& text) {
  write_((bar_width_ > 0 ? rub_out() : "") + text + '\n');
  bar_width_ = 0;
}

void Progress::finish() {
  if (state_.step == 0) return;
  if (drawn_step_ != state_.step || (options_.terminal && bar_width_ == 0)) draw();
  if (bar_width_ > 0) write_("\n");
  bar_width_ = 0;
}

}  // namespace lockstep::track
