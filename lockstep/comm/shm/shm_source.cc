#include "lockstep/comm/shm/shm_source.h"

#include <algorithm>
#include <cstring>

namespace lockstep::comm {

ShmSource::ShmSource(ShmNode& node, const at::Tensor& tensor, int64_t rows)
    : data_(static_cast<const std::byte*>(tensor.const_data_ptr())),
      rows_(rows),
      length_(tensor.numel() / rows),
      element_size_(static_cast<int64_t>(tensor.element_size())) {
  if (const auto offset = node.offset_of(data_, tensor.nbytes())) {
    offset_ = *offset;
    staged_ = length_;
  } else {
    copy_ = node.allocate(tensor.nbytes());
    offset_ = copy_.offset;
  }
}

void ShmSource::stage() {
  const int64_t count = std::min(length_ - staged_, std::max<int64_t>(kPieceBytes / (rows_ * element_size_), 1024));
  for (int64_t row = 0; row < rows_; ++row) {
    const int64_t at = (row * length_ + staged_) * element_size_;
    std::memcpy(copy_.as<std::byte>() + at, data_ + at, static_cast<size_t>(count * element_size_));
  }
  staged_ += count;
}

}  // namespace lockstep::comm
