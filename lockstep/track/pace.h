// The speed of a run under way, and whether it says anything about the time that is left.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::track {

// Knows only what the steps have told. The first steps, which allocate and warm caches, are not those to come and do
// not count.
class Pace {
 public:
  // Tells of a step: its samples, and the seconds that it took.
  void step(int64_t samples, double seconds);

  // Samples a second, of the first steps too where there are no others yet; 0 before any.
  double samples_per_second() const;

  // The seconds that so many more samples take. Nothing before the speed is steady: after kLeastSteps steps and
  // kLeastSeconds seconds that count, or after kEnoughSteps.
  std::optional<double> seconds_for(int64_t samples) const;

  static constexpr int64_t kFirstSteps = 3, kLeastSteps = 5, kEnoughSteps = 100;
  static constexpr double kLeastSeconds = 2;

 private:
  int64_t steps_ = 0;
  int64_t samples_ = 0, first_samples_ = 0;
  double seconds_ = 0, first_seconds_ = 0;
};

}  // namespace lockstep::track
