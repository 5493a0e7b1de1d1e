// Access to a tensor's memory as bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace lockstep::comm {

// The address of a contiguous tensor's data; null for an undefined tensor.
inline std::byte* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::byte*>(tensor.data_ptr()) : nullptr;
}

}  // namespace lockstep::comm
