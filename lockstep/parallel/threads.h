// The intra-op threads of a program of one's own.
#pragma once

namespace lockstep::parallel {

// Sets libtorch's intra-op threads to this machine's cores ÷ `lanes`, as `lockstep train` does, unless somebody has
// chosen them: OMP_NUM_THREADS is set by the user or by another launcher, or the program has called set_num_threads().
// Some of libtorch's kernels add in the order of their threads' parts, so the bits of a run are the same at any number
// of ranks only if a rank's number of threads is. `lanes`: of all ranks. Called by the thread that runs the steps.
void choose_threads(int lanes);

}  // namespace lockstep::parallel
