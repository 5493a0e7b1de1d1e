// The numbers of processes, lanes and threads that go together. Pure functions.
#pragma once

namespace lockstep::parallel {

// Throws ConfigError, which lists the numbers that would do, unless each of `nproc` ranks gets a power of two of the
// `lanes`, or one rank gets all of them. Only then are a rank's lanes a subtree of the fold. lanes 0 means as many as
// ranks, which always fits.
void check_lanes(int nproc, int lanes);

// Returns the largest number of ranks up to `cores` (and the board's 64) that check_lanes accepts.
// The same on each of several nodes; 0 if the lanes can't be divided by the ranks of so many.
int fitting_nproc(int cores, int lanes, int nodes = 1);

// Returns the intra-op threads of a rank: cores ÷ lanes, at least 1. It divides by lanes and not by ranks, so that a
// run on another number of ranks computes with the same number of threads, hence the same bits.
int default_threads(int cores, int lanes);
// The number that is wanted, or the default where that is 0.
int threads_or_default(int wanted, int cores, int lanes);

}  // namespace lockstep::parallel
