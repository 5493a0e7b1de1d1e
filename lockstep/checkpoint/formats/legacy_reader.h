// The .pt format before PyTorch 1.6: no zip archive, but five pickles in a row, and the storages after them.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/read_options.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Whether a file that starts with these bytes has the legacy format.
bool is_legacy_pt(std::string_view start);

// Reads a file of that format, as open_pt() does. It has no checksums.
Value open_legacy_pt(const std::string& path, const InputFile& file, const ReadOptions& options = {});

}  // namespace lockstep::checkpoint
