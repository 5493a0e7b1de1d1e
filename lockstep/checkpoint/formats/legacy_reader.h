// The form of .pt files before PyTorch 1.6: no zip, but five pickles in a row and the storages behind them.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Whether a file that starts with these bytes is one.
bool is_legacy_pt(std::string_view start);

// As read_pt, for a file that is one.
Value read_legacy_pt(const std::string& path, const InputFile& file);

}  // namespace lockstep::checkpoint
