#include "lockstep/checkpoint/formats/storage_source.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstdint>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

namespace {

// Large pages where they fit: the first touch of a small one costs as much as the disk takes to read it.
void ask_for_large_pages(char* memory, uint64_t bytes) {
  constexpr uintptr_t kPage = 2u << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a wish: it may be refused
}

}  // namespace

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
