// A checkpoint's content as a tree, for people.
#pragma once

#include <string>

#include "lockstep/checkpoint/contents/leaves.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// "2,034,050".
std::string grouped(uint64_t number);

// A line for each tensor (type, shape, bytes, least, mean and largest number, standard deviation, the start of its
// SHA-256; and how many NaNs and infinities it has), for each plain value and for each dict that holds any, indented
// below it. Lists of plain values stand on one line. Then totals, of the parts and of all. Empty if the choice takes
// nothing.
std::string tree_text(const Value& value, const PathChoice& only = {});

}  // namespace lockstep::checkpoint
