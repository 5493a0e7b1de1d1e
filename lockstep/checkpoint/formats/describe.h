// A checkpoint's content, for people and scripts: every leaf by its path, tensors by their hash.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The SHA-256 of the tensor's elements in row-major order, little-endian. Equal values hash equally whatever their
// strides.
std::string tensor_sha256(const at::Tensor& tensor);

// Describes each leaf, in the file's order:
//   {"model/conv1.weight": {"dtype": "float32", "shape": […], "sha256": "…"}, "epoch": {"value": 4}, …}
// A path joins its keys by "/"; a list item's key is its index. Bytes are given in hexadecimal, and the numbers that
// JSON cannot express as "nan", "inf", "-inf". Empty lists and dicts have no leaf and do not appear.
nlohmann::ordered_json describe(const Value& value);

}  // namespace lockstep::checkpoint
