// A trace as an ONNX model: each of its operations becomes one or a few of ONNX's.
#pragma once

#include "lockstep/exporting/onnx_model.h"
#include "lockstep/exporting/trace.h"

namespace lockstep::exporting {

struct OnnxOptions {
  bool any_batch = true;  // the first dimension of inputs and output is named "batch"
  bool any_size = false;  // of inputs and output [N, C, H, W], H and W are named too
};

// Parameters and buffers have their names, inputs are called as in the trace, the output "output". The model shares the
// trace's tensors. Throws ConfigError that names an operation without a translation.
OnnxModel to_onnx(const Trace& trace, const OnnxOptions& options);

// Whether both have the same operators with the same numbers, whatever the network's own tensors. Of traces of inputs
// of several sizes this says that no size has become a number of the file.
bool same_operators(const OnnxModel& a, const OnnxModel& b);

}  // namespace lockstep::exporting
