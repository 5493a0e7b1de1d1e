// Writing .pt files that PyTorch's torch.load reads with weights_only=True.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/byte_sink.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Writes the tree as one .pt file. Tensors keep their strides; those that share a storage share it in the file. The
// bytes are a function of the values and of that sharing alone: no time, no path, no chance. Tensors in CPU memory are
// written from where they lie and must not change meanwhile. Throws IoError if the sink does, BugError for what no
// checkpoint holds (an undefined or sparse tensor).
void write_pt(const Value& value, ByteSink& sink);

// The same, atomically, to a file (see write_atomically).
void write_pt(const Value& value, const std::string& path);

}  // namespace lockstep::checkpoint
