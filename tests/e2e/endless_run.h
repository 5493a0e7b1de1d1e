// A run of training that would go on for hours, for tests that end it.
#pragma once

#include <sys/types.h>

#include <string>

#include "program.h"
#include "runs.h"

namespace lockstep::e2e {

struct EndlessRun {
  explicit EndlessRun(int nproc);

  std::string folder() const { return dir / "run"; }
  bool is_training() const;      // waits until a few steps are done; false if that takes too long
  pid_t worker(int rank) const;  // its process; -1 if there is none

  TempDir dir;
  Program program;
};

}  // namespace lockstep::e2e
