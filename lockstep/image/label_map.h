// The classes that the values of masks stand for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/image/pixels.h"

namespace lockstep::image {

constexpr size_t kMostClasses = 256;

// The values that occur in a mask, ascending. `name` begins errors. Throws DataError for more than kMostClasses.
std::vector<uint32_t> values_in(std::span<const uint32_t> mask, const std::string& name);

// Throws DataError for a mask, `name`, whose values make those of all masks more than kMostClasses.
[[noreturn]] void throw_too_many_values(const std::string& name);

// Immutable; any thread.
class LabelMap {
 public:
  // Class i has the value values[i]. Throws DataError unless they ascend and are 1 to kMostClasses.
  explicit LabelMap(std::vector<uint32_t> values);
  const std::vector<uint32_t>& values() const { return values_; }

  // Writes the class of each value. `name` begins errors. Throws DataError that names the first pixel whose value is
  // none.
  void map(std::span<const uint32_t> values, Size size, const std::string& name, Pixels& classes) const;

 private:
  std::vector<uint32_t> values_;
  std::vector<int16_t> class_of_;  // of values below 256; -1: none
};

}  // namespace lockstep::image
