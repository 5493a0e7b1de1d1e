// What every backend has to do, as GoogleTest expectations that all ranks of a communicator run together. Expected
// values come from plain tensor operations in the tree's order, not from our kernels.
#pragma once

#include "lockstep/comm/communicator.h"

namespace lockstep::comm::testing {

// All of the checks below but the last. Any number of ranks.
void conformance(Communicator& comm);

void check_reductions(Communicator& comm);  // every op and dtype, small sizes, any layout
void check_folds(Communicator& comm);       // many tensors, square sums, 16-bit wire
void check_movements(Communicator& comm);   // even and uneven
void check_under_way(Communicator& comm);   // many calls at once, waited for in any order
void check_messages(Communicator& comm);
void check_groups(Communicator& comm);
void check_views(Communicator& comm);                     // where ranks can share memory
void check_mistakes(Communicator& comm);                  // and the communicator goes on working
void check_megabytes(Communicator& comm, int64_t bytes);  // the main calls on so much data

}  // namespace lockstep::comm::testing
