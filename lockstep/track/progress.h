// The progress of a run, for people: a bar that redraws itself on a terminal, and a plain line now and then elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/clock.h"

namespace lockstep::track {

struct ProgressState {
  int64_t step = 0;   // steps done
  int64_t steps = 0;  // of the whole run
  int64_t epoch = 0;  // the current one, from 1
  int64_t epochs = 0;
  double loss = 0;  // of the last step
  double lr = 0;
  double samples_per_second = 0;
  std::optional<double> seconds_left = {};  // nothing: not known yet
};

// "epoch 2/5  step 140/625  loss 0.2301  lr 0.0438  5210 samples/s  ETA 0:12"
std::string progress_text(const ProgressState& state);

// One line for a terminal of `columns` columns, and shorter than these: progress_text() behind a bar. Where there is no
// room for all of it, it does without the learning rate, then without the speed, then without the bar and further
// fields; the time that is left stays longest.
std::string progress_bar(const ProgressState& state, int columns);

class Progress {
 public:
  struct Options {
    bool terminal = false;
    std::function<int()> columns = [] { return 80; };  // of the terminal, asked before each drawing
    bool quiet = false;                                // nothing is drawn; line() and finish() still do their work
    double seconds_between = 5;                        // plain lines; a terminal is redrawn ten times a second
  };
  using Write = std::function<void(const std::string& text)>;

  Progress(Options options, Write write) : options_(std::move(options)), write_(std::move(write)) {}

  void update(const ProgressState& state);
  // Writes a line of its own above the bar.
  void line(const std::string& text);
  // Shows the last state, unless it is shown already, and ends the bar.
  void finish();

 private:
  void draw();
  std::string rub_out() const;  // what takes the bar off the terminal

  Options options_;
  Write write_;
  ProgressState state_;
  int64_t drawn_ns_ = 0;
  int64_t drawn_step_ = 0;
  int bar_width_ = 0;  // of the bar that is on the terminal; 0: there is none
};

}  // namespace lockstep::track
