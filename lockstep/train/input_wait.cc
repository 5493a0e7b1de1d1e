#include "lockstep/train/input_wait.h"

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

constexpr double kMostShare = 0.1;
constexpr double kLeastWait = 1;  // seconds; nobody need tune a run that waits for less

}  // namespace

void InputWait::step(double seconds, const InputTimes& times) {
  if (is_first_) {
    is_first_ = false;
    return;
  }
  seconds_ += seconds;
  wait_ += times.wait;
  read_ += times.read;
}

std::string InputWait::line(int workers, int cores) const {
  if (wait_ < kLeastWait || wait_ <= kMostShare * seconds_) return "";
  // Threads that wait for a disk need no core.
  const bool reads_most = read_.read_ns > read_.decode_ns + read_.transform_ns;
  const bool more_help = workers < cores || reads_most;
  return cat("input-bound: ", std::lround(100 * wait_ / seconds_), " % waiting for data; ",
             more_help ? "add --workers" : "no core is left for more --workers", " (now ", workers, ')');
}

}  // namespace lockstep::train
