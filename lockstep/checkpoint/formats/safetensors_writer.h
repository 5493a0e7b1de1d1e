// Writes safetensors files, which the safetensors library reads and writes the same, byte for byte.
#pragma once

#include <functional>
#include <string>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Writes a dict of tensors, row-major, each with memory of its own also where they share a storage. Their elements may
// be in a file still (stored_tensor.h). "__metadata__" may be among them, a dict of texts; without it, it says that the
// format is "pt", which libraries that load models ask for. Throws ConfigError for values that the format has no place
// for, IoError if the sink does.
void write_safetensors(const Dict& tensors, ByteSink& sink);

// Writes it to a file, atomically (see write_atomically, also for `on_progress`).
void write_safetensors(const Dict& tensors, const std::string& path, const std::function<void()>& on_progress = {});

}  // namespace lockstep::checkpoint
