// Reads models whose safetensors are sharded over several files, named by an index, model.safetensors.index.json:
//   {"metadata": {"total_size": …}, "weight_map": {"conv1.weight": "model-00001-of-00002.safetensors", …}}
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Whether a file that starts with these bytes (start_of()) may be an index.
bool is_safetensors_index(std::string_view start);

// Reads the shards as one dict, in the index's order, as open_safetensors() does each; each is opened once.
// "__metadata__" is that of the first shard. A shard's name is a file's in the index's folder, without a path; a link
// must lead to that folder, or to the one where the index itself lies if it is a link. Throws DataError, also where
// index and shards disagree on their tensors; IoError.
Value open_safetensors_index(const std::string& path, const InputFile& file);

// The file that stands for a folder: model.safetensors.index.json, else its only .safetensors; nothing if it has none.
// Throws DataError for several without an index.
std::optional<std::string> find_safetensors(const std::string& folder);

}  // namespace lockstep::checkpoint
