// One of the files of which a data set is made.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct Listed {
  std::string name;    // relative to the data set's folder
  uint64_t bytes = 0;  // its size
  bool operator==(const Listed&) const = default;
};

}  // namespace lockstep
