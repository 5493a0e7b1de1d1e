// What is in a checkpoint, for people and scripts: every leaf by its path, tensors by their hash.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// SHA-256 of the tensor's elements in row-major order, little-endian: equal for equal values whatever the strides.
std::string tensor_sha256(const at::Tensor& tensor);

// {"model/conv1.weight": {"dtype": "float32", "shape": […], "sha256": "…"}, "epoch": {"value": 4}, …} in the file's
// order: paths joined by "/", list items by their number. Bytes are given in hexadecimal, and numbers that JSON has no
// word for as "nan", "inf", "-inf". Empty lists and dicts have no leaf and leave no trace.
nlohmann::ordered_json describe(const Value& value);

}  // namespace lockstep::checkpoint
