// A small interpreter of Python's pickles, as torch.save writes them: protocol 2, and what appears of 3 to 5. It builds
// values and calls nothing. Names come from a closed list (pickle_globals.h); the number of operations, containers and
// tensors, the depth and the size of the result are bounded; every length is compared with what is left of the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

constexpr size_t kMaxPickleBytes = 64u << 20;

// What the tensors of a file of this size may expand to where they are views of one storage, each counted as if it were
// contiguous: enough for all that is saved in earnest, too little to keep whoever looks at them busy for long.
constexpr uint64_t max_tensor_bytes(uint64_t file_bytes) { return 16 * file_bytes + (uint64_t{256} << 20); }

struct PickleOptions {
  std::string name;                   // how errors call the pickle: "run.pt: data.pkl"
  StorageSource* storages = nullptr;  // borrowed; without it the pickle may hold no tensors
  uint64_t max_tensor_bytes = 0;      // of all tensors, counted as often as the values name them
};

struct PickleResult {
  Value value;
  size_t bytes_read = 0;  // the pickle's own length: others may follow it
};

// Reads the pickle at the start of `bytes` (at most kMaxPickleBytes are looked at). Tensors lie on the CPU and share
// their storages as they do in the file. Throws DataError with the offset of the operation at fault.
PickleResult read_pickle(std::string_view bytes, const PickleOptions& options);

}  // namespace lockstep::checkpoint
