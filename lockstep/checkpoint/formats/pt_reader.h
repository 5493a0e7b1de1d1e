// Reads the .pt files of torch.save, in the zip format and in the format before PyTorch 1.6.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/read_options.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Whether a file that starts with these bytes (start_of()) may be one.
bool is_pt(std::string_view start);

// Reads the file's tree. Tensors share storages as they do in the file, where their elements remain (stored_tensor.h)
// unless they are compressed. Nothing in the file is executed, and reading takes no more memory than the file's size
// and a bounded rest. Throws DataError that names the file and the fault (cut short, hostile, no checkpoint), IoError
// if it can't be read.
Value open_pt(const std::string& path, const InputFile& file, const ReadOptions& options = {});

// Reads all that the file holds into memory. Throws as open_pt() does, and DataError for a file that is missing or of
// another format.
Value read_pt(const std::string& path, const ReadOptions& options = {});

}  // namespace lockstep::checkpoint
