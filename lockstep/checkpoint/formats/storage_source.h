// A source of memory for a pickle's tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {

struct StorageRequest {
  std::string_view key;  // the file's name for the storage
  int64_t bytes = 0;     // never negative, but untrusted: compare it with the file's size before allocating
};

class StorageSource {
 public:
  virtual ~StorageSource() = default;
  // Returns the same storage for the same key. Throws DataError if the file holds no such storage of this size.
  virtual c10::Storage storage(const StorageRequest& request) = 0;
};

// Allocates a storage by libtorch's CPU allocator; its content is undefined. Throws IoError if memory is short.
c10::Storage allocate_storage(int64_t bytes);

// The tensor of a geometry without fault over a storage. It needs no data: the storage may lie in a file.
at::Tensor tensor_over(const c10::Storage& storage, at::ScalarType dtype, const TensorGeometry& geometry);

}  // namespace lockstep::checkpoint
