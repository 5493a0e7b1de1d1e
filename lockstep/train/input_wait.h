// How much of a run's time its training steps wait for data.
#pragma once

#include <string>

#include "lockstep/data/dataset.h"

namespace lockstep::train {

// Where the time of a step's data went, all in this process.
struct InputTimes {
  double wait = 0;            // seconds that the step stood still for the loader
  data::ReadStats read = {};  // of reading its batch, in all threads together and mostly while earlier steps computed
};

class InputWait {
 public:
  // Counts a step of `seconds`. The first one is left out: nothing could be read ahead for it.
  void step(double seconds, const InputTimes& times);

  // A line for people, without "\n": the share that was waiting, and what helps. Empty where that was no more than a
  // tenth of the time, or less than a second in all. `workers`: the threads that load data; `cores`: those that
  // can serve them.
  std::string line(int workers, int cores) const;

 private:
  bool is_first_ = true;
  double seconds_ = 0;
  double wait_ = 0;
  data::ReadStats read_;
};

}  // namespace lockstep::train
