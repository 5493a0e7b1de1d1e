// How many processes, lanes and threads go together: pure functions.
#pragma once

namespace lockstep::parallel {

// Throws ConfigError that lists what would do unless each of `nproc` ranks gets a power of two of the `lanes` (or one
// rank all of them): only then is a rank's block a subtree of the fold. lanes 0: as many as ranks, which always fits.
void check_lanes(int nproc, int lanes);

// The largest number of ranks up to `cores` (and the board's 64) that check_lanes accepts.
int fitting_nproc(int cores, int lanes);

// Intra-op threads of a rank: cores ÷ lanes, at least 1. By lanes and not by ranks, so that a run on another number of
// ranks computes with the same number of threads, hence the same bits.
int default_threads(int cores, int lanes);

}  // namespace lockstep::parallel
