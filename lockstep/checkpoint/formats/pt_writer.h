// Writes .pt files that PyTorch's torch.load reads with weights_only=True.
#pragma once

#include <functional>
#include <string>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Writes the tree as one .pt file. Tensors keep their strides; tensors that share a storage share it in the file. The
// bytes depend on the values and on that sharing alone, never on time, path or chance. CPU tensors are written from
// their own memory and must not change meanwhile. Throws IoError if the sink does, BugError for what no checkpoint
// holds (an undefined or sparse tensor).
void write_pt(const Value& value, ByteSink& sink);

// Writes it to a file, atomically (see write_atomically, also for `on_progress`).
void write_pt(const Value& value, const std::string& path, const std::function<void()>& on_progress = {});

}  // namespace lockstep::checkpoint
