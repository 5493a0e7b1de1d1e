// Differences between checkpoints, for people and scripts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/checkpoint/compare.h"

namespace lockstep::checkpoint {

// "float32 [20, 1, 5, 5]" for a tensor, "a dict of 26 tensors and 4 values", "0.1" (cut where it is long) for a plain
// value.
std::string text_of(const Value& value);
std::string text_of(const at::Tensor& tensor);

// A line: "model/conv1.weight  500 of 500 elements differ, most at [3, 0, 1, 2]: 0.1 | 0.2, by 0.1; relative …".
std::string text_of(const Difference& difference);

// The first `most` differences, a line each with two blanks before it, and how many there are besides.
std::string text_of(const Comparison& comparison, size_t most);

// {"tensors", "values", "differing", "differences": [{"path", "kind":
// "only_in_a"|"only_in_b"|"kind"|"dtype"|"shape"|"values", "a", "b", "elements", "differing", "absolute":
// {"difference", "index", "a", "b"}, "relative": …}, …]}: the first `most`. What is not finite is "nan", "inf" or
// "-inf".
nlohmann::ordered_json json_of(const Comparison& comparison, size_t most);

}  // namespace lockstep::checkpoint
