// A small interpreter of Python's pickles, of protocols 2 to 5, as torch.save and Paddle write them. It builds values
// and calls nothing. Names come from a closed list (pickle_globals.h). The number of operations, the memory that they
// take, and the depth and size of the result are bounded. Every length is compared with the bytes that are left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/memory_budget.h"
#include "lockstep/checkpoint/formats/pickle_bytes.h"
#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

constexpr uint64_t kMaxPickleBytes = 64u << 20;

// What reading a file may take besides the bytes of the file and its tensors: with what libtorch takes by itself, a
// process stays below the file's size and 256 MiB.
constexpr uint64_t kReadingMemory = 96u << 20;

// The bytes that the tensors of a file of this size may expand to, each counted as if it were contiguous: views of one
// storage may be larger than it. The bound admits every honest checkpoint and keeps a hostile one from occupying its
// reader for long.
constexpr uint64_t max_tensor_bytes(uint64_t file_bytes) { return 16 * file_bytes + (uint64_t{256} << 20); }

struct PickleOptions {
  std::string name;                      // the pickle's name in errors: "run.pt: data.pkl"
  StorageSource* storages = nullptr;     // borrowed; nullptr: the pickle may hold no tensors
  uint64_t max_tensor_bytes = 0;         // of all tensors; one counts once for each reference to it
  MemoryBudget* budget = nullptr;        // borrowed; nullptr: kReadingMemory for this pickle alone
  bool ignore_unknown = false;           // classes and functions that are not on the list become Opaque values
  uint64_t max_bytes = kMaxPickleBytes;  // below 4 GiB
};

struct PickleResult {
  Value value;
  size_t bytes_read = 0;  // the pickle's own length; other pickles may follow
};

// Reads the pickle at the start of `bytes` (at most `max_bytes` are looked at). Tensors lie on the CPU and share
// their storages as they do in the file. Throws DataError with the offset of the operation at fault.
PickleResult read_pickle(std::string_view bytes, const PickleOptions& options);

// The same of bytes that may be a file's, below 4 GiB. The content of large arrays of numpy's remains there
// (stored_tensor.h).
PickleResult read_pickle(const PickleBytes& bytes, const PickleOptions& options);

}  // namespace lockstep::checkpoint
