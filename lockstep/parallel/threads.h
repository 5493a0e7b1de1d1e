// The intra-op threads of a program of one's own.
#pragma once

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel {

// Sets libtorch's intra-op threads to this machine's cores ÷ `lanes`, as `lockstep train` does, unless somebody has
// chosen them: OMP_NUM_THREADS is set by the user or by another launcher, or the program has called set_num_threads().
// Some of libtorch's kernels add in the order of their threads' parts, so the bits of a run are the same at any number
// of ranks only if a rank's number of threads is. `lanes`: of all ranks. Called by the thread that runs the steps; its
// first call counts, whatever propose_threads() has set before.
void choose_threads(int lanes);
// The same for what comes before the first step, such as a loader: sets the number until choose_threads(), and leaves
// it where that or an earlier proposal has set it.
void propose_threads(int lanes);

// The threads that all ranks take where nodes have other numbers of cores: the least of the ranks'. A collective.
int least_of_ranks(int threads, comm::Communicator& comm);

// One thread as long as it exists, where nothing has chosen or proposed their number yet: a number that is the same at
// any number of ranks.
class OneThreadUnlessChosen {
 public:
  OneThreadUnlessChosen();
  ~OneThreadUnlessChosen();
  OneThreadUnlessChosen(const OneThreadUnlessChosen&) = delete;
  OneThreadUnlessChosen& operator=(const OneThreadUnlessChosen&) = delete;

 private:
  int before_ = 0;  // 0: they are chosen
};

}  // namespace lockstep::parallel
