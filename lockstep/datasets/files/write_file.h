// Writes files for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::datasets {

// Writes or replaces a file. Half a file is removed. Throws IoError that names the path.
void write_file(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace lockstep::datasets
