// A tensor's memory as bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace lockstep::comm {

// Where a contiguous tensor's data begins; null for an undefined one.
inline std::byte* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::byte*>(tensor.data_ptr()) : nullptr;
}

}  // namespace lockstep::comm
