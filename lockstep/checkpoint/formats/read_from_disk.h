// The reading of ranges that lie on a disk.
#pragma once

#include <vector>

#include "lockstep/checkpoint/formats/range_reader.h"

namespace lockstep::checkpoint {

// Reads the ranges in the order in which they lie in their files, by large blocks: one or two threads read, past the
// system's memory (O_DIRECT) where nobody reads the bytes again soon, and the calling thread copies and sums up what
// has come. Ends each range. Throws DataError, IoError.
void read_from_disk(std::vector<ReadRange> ranges);

}  // namespace lockstep::checkpoint
