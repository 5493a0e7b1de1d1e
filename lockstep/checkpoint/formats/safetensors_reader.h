// Reads safetensors files: 8 bytes with the length of a JSON header, the header, the tensors' bytes.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Whether a file that starts with these bytes (start_of()) may be one.
bool is_safetensors(std::string_view start);

// Reads the file as a dict of its tensors, in the header's order. If the header has "__metadata__", the dict begins
// with that name and a dict of its texts. Tensors are contiguous; their elements remain in the file (stored_tensor.h),
// which has no checksums. Throws DataError that names the file, the tensor and the fault, IoError if it can't be read.
Value open_safetensors(const std::string& path, const InputFile& file);

}  // namespace lockstep::checkpoint
