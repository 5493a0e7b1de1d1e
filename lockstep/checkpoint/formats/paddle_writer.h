// Writes files that paddle.load reads: one bare pickle of protocol 4, with numpy arrays for tensors.
#pragma once

#include <functional>
#include <string>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Writes the tree in the layout that paddle.save gives it; names and shapes must be Paddle's already (paddle_names.h).
// A dict that holds its tensors itself is a state dict, and gets the table of names that paddle.load wants. Tensors are
// written from their own memory if they are contiguous on the CPU, and must not change meanwhile. Tensors that share
// memory are written once each. Throws IoError if the sink does, DataError that names `file` for a type that Paddle
// lacks, BugError for what no file holds.
void write_paddle(const Value& value, ByteSink& sink, const std::string& file = "the file");

// Writes it to a file, atomically (see write_atomically, also for `on_progress`).
void write_paddle(const Value& value, const std::string& path, const std::function<void()>& on_progress = {});

}  // namespace lockstep::checkpoint
