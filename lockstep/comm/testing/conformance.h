// The conformance suite that every backend must pass, as GoogleTest expectations that all ranks of a communicator run
// together. Expected values come from plain tensor operations in the tree's order, not from our kernels.
#pragma once

#include "lockstep/comm/communicator.h"

namespace lockstep::comm::testing {

// Runs all of the checks below but the last, on any number of ranks.
void conformance(Communicator& comm);

void check_reductions(Communicator& comm);  // every op and dtype, small sizes, any layout
void check_folds(Communicator& comm);       // many tensors, square sums, 16-bit wire
void check_movements(Communicator& comm);   // all_gather, all_to_all and the like, even and uneven
void check_versions(Communicator& comm);    // autograd's, of what calls write
void check_under_way(Communicator& comm);   // many calls under way at once, waited for in any order
void check_messages(Communicator& comm);
void check_groups(Communicator& comm);
void check_views(Communicator& comm);                     // views_of(), where ranks can share memory
void check_mistakes(Communicator& comm);                  // wrong calls, after which the communicator still works
void check_megabytes(Communicator& comm, int64_t bytes);  // the main calls on `bytes` of data

}  // namespace lockstep::comm::testing
