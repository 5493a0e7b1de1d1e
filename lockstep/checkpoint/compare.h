// Which tensors and values differ between two checkpoints, where, and by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The element of two tensors at which a measure of their difference is largest. Of complex numbers `a` and `b` are the
// real parts; the difference is that of the numbers.
struct LargestDifference {
  double difference = 0;
  std::vector<int64_t> index;
  double a = 0, b = 0;
};

struct Difference {
  enum class Kind {
    kOnlyInA,  // a tensor or a value, or a dict or list with all that it holds
    kOnlyInB,
    kKind,   // a tensor and a number, a text and a dict
    kDtype,  // of tensors; compared as numbers where their shapes are equal
    kShape,
    kValues,  // of tensors of one type and shape, or of plain values
  };
  Kind kind = Kind::kValues;
  std::string path;
  std::string a, b;  // for people: "float32 [20, 1]", "0.1"; empty where there is none

  // Of tensors of equal shapes. Elements differ if their bits do, so that +0 and -0 do, and two NaNs may; of two types,
  // if they are not the same number.
  int64_t elements = 0, differing = 0;
  // Infinite where one side alone is NaN or infinite, and 0 between NaNs. The relative one is to the larger magnitude.
  std::optional<LargestDifference> absolute, relative;

  // Larger differences come first in reports: infinite for what can't be measured.
  double size() const;
};

struct Comparison {
  int64_t tensors = 0, values = 0;      // that both have
  std::vector<Difference> differences;  // the largest first
};

// Compares two trees, dicts by their keys in any order; a list and a tuple are alike. Tensors lie on any device.
Comparison compare(const Value& a, const Value& b);

}  // namespace lockstep::checkpoint
