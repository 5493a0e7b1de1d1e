// Small files of a run's folder.
#pragma once

#include <string>

namespace lockstep::train {

// Returns the whole of a text file; empty if it can't be read.
std::string read_text(const std::string& path);

// Writes a small text file atomically. Throws IoError.
void write_text(const std::string& path, const std::string& text);

// The same for a list, of which no file is left where it is empty.
void write_or_remove(const std::string& path, const std::string& text);

}  // namespace lockstep::train
