#include "lockstep/track/pace.h"

namespace lockstep::track {
namespace {

double rate(int64_t samples, double seconds) { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }

}  // namespace

void Pace::step(int64_t samples, double seconds) {
  const bool first = steps_++ < kFirstSteps;
  (first ? first_samples_ : samples_) += samples;
  (first ? first_seconds_ : seconds_) += seconds;
}

double Pace::samples_per_second() const {
  return steps_ > kFirstSteps ? rate(samples_, seconds_) : rate(first_samples_, first_seconds_);
}

std::optional<double> Pace::seconds_for(int64_t samples) const {
  const int64_t counted = steps_ - kFirstSteps;
  const bool steady = counted >= kEnoughSteps || (counted >= kLeastSteps && seconds_ >= kLeastSeconds);
  if (samples == 0) return 0;
  if (!steady || samples_ == 0) return std::nullopt;
  return static_cast<double>(samples) * seconds_ / static_cast<double>(samples_);
}

}  // namespace lockstep::track
