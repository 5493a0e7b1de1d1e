// Reads the files of paddle.save: .pdparams, .pdopt. Each is one bare pickle of dicts of numpy arrays.
//
// A state dict's arrays are found under their names, and "StructuredToParameterName@@" holds Paddle's own name of each
// parameter. Other content has its tensors as tuples (name, array). Paddle stores bfloat16 in numpy's uint16, which it
// has no tensors of. At protocols 2 and 3 arrays of 1 GiB and more are cut into pieces, which "UnpackBigParamInfor@@"
// tells how to join.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/read_options.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The key of a state dict's table of names.
inline constexpr std::string_view kPaddleNames = "StructuredToParameterName@@";

// Whether a file that starts with these bytes may be one: a pickle, and none of torch.save.
bool is_paddle(std::string_view start);
bool is_paddle_file(const std::string& path);  // the same of a file; throws as open_input() does

// Reads such a file, as read_pt() does; its tensors are those that paddle.load would make, still in Paddle's layout and
// names (paddle_names.h). The content of large arrays remains in the file
// (stored_tensor.h), but at protocols 2 and 3, which write bytes as text. Those take twice the file, and up to that the
// arrays of few kB. Files of 4 GiB and
// more are refused.
Value read_paddle(const std::string& path, const InputFile& file, const ReadOptions& options = {});

}  // namespace lockstep::checkpoint
