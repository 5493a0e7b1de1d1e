// Reads the .pt files of torch.save, in the zip format and in the format before PyTorch 1.6.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Reads all that the file holds. Its tensors lie in CPU memory and share storages as they do in the file. Nothing in
// the file is executed, and reading takes no more memory than the file's size and a bounded rest. Throws DataError that
// names the file and the fault (missing, cut short, hostile, no checkpoint), IoError if it can't be read.
Value read_pt(const std::string& path);

}  // namespace lockstep::checkpoint
