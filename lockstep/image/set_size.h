// Vectors whose memory serves one image after the other.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::image {

// Prepares `values` for `size` of them, whose contents are undefined. Gives memory back as Pixels does.
template <typename T>
void set_size(std::vector<T>& values, size_t size) {
  constexpr size_t kMuch = 64 << 20;  // bytes
  if (values.capacity() * sizeof(T) > kMuch && size < values.capacity() / 4) std::vector<T>().swap(values);
  values.resize(size);
}

}  // namespace lockstep::image
