#include "lockstep/checkpoint/formats/storage_source.h"

#include <ATen/ATen.h>

#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/large_pages.h"

namespace lockstep::checkpoint {

// On large pages: the first touch of a small one costs as much as the disk takes to read it.
c10::Storage allocate_storage(int64_t bytes) {
  try {
    c10::Storage storage = at::empty({bytes}, at::kByte).storage();
    ask_for_large_pages(static_cast<char*>(storage.mutable_data()), static_cast<uint64_t>(bytes));
    return storage;
  } catch (const c10::Error&) {
    throw IoError("no memory for a tensor of ", human_bytes(static_cast<uint64_t>(bytes)), " of a checkpoint");
  }
}

at::Tensor tensor_over(const c10::Storage& storage, at::ScalarType dtype, const TensorGeometry& geometry) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(geometry.sizes, geometry.strides, geometry.offset);
  return tensor;
}

}  // namespace lockstep::checkpoint
