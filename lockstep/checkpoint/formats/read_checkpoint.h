// Reads a checkpoint of any format. What the file begins with decides the format, whatever its name.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/read_options.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Reads all that a file holds into memory: .pt (pt_reader.h), safetensors (safetensors_reader.h), the index of a
// sharded safetensors model, .pdparams and .pdopt (paddle_reader.h). Of a folder it takes the file that
// find_safetensors() names. Nothing in a file is executed. Throws DataError that names the file and the fault (missing,
// cut short, hostile, no checkpoint), IoError if it can't be read.
Value read_checkpoint(const std::string& path, const ReadOptions& options = {});

// Reads the tree, and only the small tensors of it into memory; of the others the elements remain in the file
// (stored_tensor.h). They go to where they are wanted by load_state_dict(), by copy_elements(), and into memory by
// ValueView::tensor(). All checksums have been compared, so that damage is found before anything is overwritten, unless
// ReadOptions::checks_on_the_way. Throws as read_checkpoint() does.
Value open_checkpoint(const std::string& path, const ReadOptions& options = {});

}  // namespace lockstep::checkpoint
