// Where the memory of a pickle's tensors comes from.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

struct StorageRequest {
  std::string_view key;  // as the file names the storage
  int64_t bytes = 0;  // never negative, otherwise unchecked: whoever allocates compares it with the file's size first
};

class StorageSource {
 public:
  virtual ~StorageSource() = default;
  // The same storage for the same key. Throws DataError if the file holds no such storage of this size.
  virtual c10::Storage storage(const StorageRequest& request) = 0;
};

// Memory of libtorch's CPU allocator for a storage, its content undefined. Throws IoError if there is not enough.
c10::Storage allocate_storage(int64_t bytes);

}  // namespace lockstep::checkpoint
