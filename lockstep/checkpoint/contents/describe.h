// A checkpoint's content, for people and scripts: every leaf by its path, tensors by their hash.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/checkpoint/contents/leaves.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The SHA-256 of the tensor's elements in row-major order, little-endian. Equal values hash equally whatever their
// strides.
std::string tensor_sha256(const at::Tensor& tensor);

// A plain value as JSON: bytes in hexadecimal, and the numbers that JSON cannot express as "nan", "inf", "-inf".
nlohmann::ordered_json plain_json(const Value& value);

struct DescribeOptions {
  // Whether tensors have these as well: "bytes", "min", "max", "mean", "std", "nan", "inf" (statistics.h). Where there
  // is no such number it is null.
  bool statistics = false;
  PathChoice only = {};
};

// Describes each leaf, in the file's order:
//   {"model/conv1.weight": {"dtype": "float32", "shape": […], "sha256": "…"}, "epoch": {"value": 4}, …}
// A path joins its keys by "/"; a list item's key is its index. Plain values are as plain_json() has them. An object of
// an unknown class is {"opaque": "its.Class"}. Empty lists and dicts have no leaf and do not appear.
nlohmann::ordered_json describe(const Value& value, const DescribeOptions& options = {});

}  // namespace lockstep::checkpoint
