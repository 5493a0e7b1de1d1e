// A small interpreter of Python's pickles as torch.save writes them: protocol 2, and the operations of 3 to 5 that
// occur. It builds values and calls nothing. Names come from a closed list (pickle_globals.h). The number of
// operations, containers and tensors and the depth and size of the result are bounded. Every length is compared with
// the bytes that are left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

constexpr size_t kMaxPickleBytes = 64u << 20;

// The bytes that the tensors of a file of this size may expand to, each counted as if it were contiguous: views of one
// storage may be larger than it. The bound admits every honest checkpoint and keeps a hostile one from occupying its
// reader for long.
constexpr uint64_t max_tensor_bytes(uint64_t file_bytes) { return 16 * file_bytes + (uint64_t{256} << 20); }

struct PickleOptions {
  std::string name;                   // the pickle's name in errors: "run.pt: data.pkl"
  StorageSource* storages = nullptr;  // borrowed; nullptr: the pickle may hold no tensors
  uint64_t max_tensor_bytes = 0;      // of all tensors; one counts once for each reference to it
};

struct PickleResult {
  Value value;
  size_t bytes_read = 0;  // the pickle's own length; other pickles may follow
};

// Reads the pickle at the start of `bytes` (at most kMaxPickleBytes are looked at). Tensors lie on the CPU and share
// their storages as they do in the file. Throws DataError with the offset of the operation at fault.
PickleResult read_pickle(std::string_view bytes, const PickleOptions& options);

}  // namespace lockstep::checkpoint
