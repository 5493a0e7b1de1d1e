// An ONNX model in memory, and its file (https://onnx.ai/onnx/repo-docs/IR.html).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/checkpoint/files/byte_sink.h"

namespace lockstep::exporting {

// The operators' version. 17 is the oldest that has all of ours, and ONNX Runtime reads it from 1.12 on (2022).
constexpr int64_t kOpset = 17;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

// One operator. Its inputs and outputs are names; an input that is left out is "".
struct OnnxNode {
  std::string op;  // "Conv"
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

// A tensor that the file holds: fp32, fp64, int64, int32 or bool.
struct OnnxTensor {
  std::string name;
  at::Tensor value;
};

// An input or output of the model.
struct OnnxPort {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::variant<int64_t, std::string>> shape;  // a dimension with a name may have any size
};

struct OnnxModel {
  std::string version;  // of the producer, which is lockstep
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxPort> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Writes the file's bytes. Throws ConfigError for a model of 2 GiB or more, which no ONNX file can hold, and for a
// tensor of another dtype; `name` is the file's, for errors.
void write_onnx(const OnnxModel& model, const std::string& name, checkpoint::ByteSink& file);

}  // namespace lockstep::exporting
