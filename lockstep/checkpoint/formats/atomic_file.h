// Replacing a file so that whoever looks, whenever the power fails, finds the old one or the new one, whole.
#pragma once

#include <functional>
#include <string>

#include "lockstep/checkpoint/formats/byte_sink.h"

namespace lockstep::checkpoint {

// The temporary file beside `path` that is written first; what a killed writer leaves there the next one overwrites.
std::string temporary_name(const std::string& path);

// Writes `path` through a temporary file in the same folder: written by `write`, fsynced, renamed, the folder fsynced.
// If anything fails, or `write` throws, the temporary file is removed, `path` is as it was before, and the error goes
// on: IoError that names the file, the bytes written so far and what to do. A second writer of the same path gets an
// IoError while the first is at work.
void write_atomically(const std::string& path, const std::function<void(ByteSink&)>& write);

// Makes `path` a symbolic link to `target` (taken relative to the link's folder), in place of what stood there,
// atomically. Throws IoError.
void link_atomically(const std::string& target, const std::string& path);

}  // namespace lockstep::checkpoint
