#include "lockstep/track/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "lockstep/base/text.h"

namespace lockstep::track {
namespace {

std::string fixed(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-:--";
  const auto total = static_cast<int64_t>(seconds + 0.5);
  const int64_t hours = total / 3600, minutes = total / 60 % 60;
  const std::string tail = cat(total % 60 < 10 ? ":0" : ":", total % 60);
  return hours > 0 ? cat(hours, minutes < 10 ? ":0" : ":", minutes, tail) : cat(minutes, tail);
}

}  // namespace

std::string progress_text(const ProgressState& state) {
  return cat("epoch ", state.epoch, '/', state.epochs, "  step ", state.step, '/', state.steps, "  loss ",
             fixed("%.4f", state.loss), "  lr ", fixed("%.3g", state.lr), "  ", fixed("%.0f", state.samples_per_second),
             " samples/s  ETA ", clock_text(state.seconds_left));
}

std::string progress_bar(const ProgressState& state, int columns) {
  const std::string text = progress_text(state);
  const int room = std::min(30, columns - static_cast<int>(text.size()) - 4);
  if (room < 5) return text.substr(0, static_cast<size_t>(std::max(0, columns - 1)));
  const double share = state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0;
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * room);
  return cat('[', std::string(full, '#'), std::string(static_cast<size_t>(room) - full, '.'), "] ", text);
}

void Progress::update(const ProgressState& state) {
  state_ = state;
  const double between = options_.terminal ? 0.1 : options_.seconds_between;
  if (static_cast<double>(monotonic_ns() - drawn_ns_) * 1e-9 >= between) draw();
}

void Progress::draw() {
  drawn_ns_ = monotonic_ns();
  if (options_.terminal) {
    write_("\r\033[K" + progress_bar(state_, options_.columns));
    bar_shown_ = true;
  } else {
    write_(progress_text(state_) + '\n');
  }
}

void Progress::line(const std::string& text) {
  write_((bar_shown_ ? "\r\033[K" : "") + text + '\n');
  bar_shown_ = false;
}

void Progress::finish() {
  if (state_.step == 0) return;
  draw();
  if (bar_shown_) write_("\n");
  bar_shown_ = false;
}

}  // namespace lockstep::track
