// A record's values by one name each: {"data": {"wait": 1}} is "data.wait", the second of "dice_per_class" is
// "dice_per_class.1".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/track/metric_sink.h"

namespace lockstep::track {

// In the record's order. A list of objects, such as the buckets of "comm" records, is left out.
std::vector<std::pair<std::string, Record>> flat(const Record& record, char between);

}  // namespace lockstep::track
