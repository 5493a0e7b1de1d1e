#include "lockstep/checkpoint/formats/storage_source.h"

#include <ATen/ATen.h>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

c10::Storage allocate_storage(int64_t bytes) {
  try {
    return at::empty({bytes}, at::kByte).storage();
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
