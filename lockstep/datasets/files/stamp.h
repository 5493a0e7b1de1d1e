// Tells files from those that they were at a former look, without reading them.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {

// Nanoseconds of the wall clock, by which file systems set their times.
int64_t wall_clock_ns();

// Changes with the names of the listed files below `folder`, their sizes, their device and number there, and their
// times of modification and of change, the latter of which no program can set back where the file system keeps it: 16
// letters. Empty where a file is not there, or was changed less than two seconds before `now`, so that it may change
// again within one tick of the file system's clock.
std::string stamp_of(const std::string& folder, const Listing& listing, int64_t now = wall_clock_ns());

}  // namespace lockstep::datasets
