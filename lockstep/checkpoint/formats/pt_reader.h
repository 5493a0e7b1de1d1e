// Reading the .pt files of torch.save, in the zip form and in the form before PyTorch 1.6.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// All that the file holds, its tensors in CPU memory, sharing storages as they do in the file. Nothing in the file is
// executed, and it takes no more memory than its own size and a bounded rest. Throws DataError that names the file
// and what is wrong with it (missing, cut short, hostile, something else than a checkpoint), IoError if it can't be
// read.
Value read_pt(const std::string& path);

}  // namespace lockstep::checkpoint
