// An image that comes through standard input, as `-i -` says.
#pragma once

#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::predict {

class StandardInput {
 public:
  // Reads standard input to its end into memory. Throws DataError if it holds nothing or more than a gigabyte, IoError.
  StandardInput();

  // A path at which this process finds what was read, as long as this lives.
  std::string path() const;
  // What people call it. An error's text with that in place of the path.
  static constexpr const char* kName = "standard input";
  std::string named(std::string text) const;

 private:
  Descriptor memory_;
};

}  // namespace lockstep::predict
