// A data set whose classes are those of another one, so that a network which knows these can be judged by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The classes of a data set.
struct Classes {
  int64_t count = 0;                    // 0: none, as in a regression
  std::vector<std::string> names = {};  // by number, each in one line of UTF-8; empty: they have none

  bool operator==(const Classes&) const = default;
};
Classes classes_of(const Dataset& data);

// Returns `data` with the classes `wanted`: class numbers in its field "target" are those of the same name. Where one
// of the two has no names, numbers stay, and there may be more wanted ones. Returns `data` itself where nothing
// changes. Throws DataError that names a class which `wanted` lacks.
std::shared_ptr<const Dataset> relabelled(std::shared_ptr<const Dataset> data, const Classes& wanted);

}  // namespace lockstep::data
