// A rank's data where the others can read it: where it lies, if that is in the pool, or a copy that is made piece by
// piece while the others already read its beginning.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/shm/shm_node.h"

namespace lockstep::comm {

class ShmSource {
 public:
  static constexpr int64_t kPieceBytes = int64_t{1} << 20;

  ShmSource() = default;  // nothing, all of it staged
  // A contiguous tensor of `rows` rows of equal length, staged in stripes: a piece of each row at a time.
  ShmSource(ShmNode& node, const at::Tensor& tensor, int64_t rows);

  uint64_t offset() const { return offset_; }
  bool complete() const { return staged_ == length_; }
  // Elements of each row that lie in the pool; the most there can be if the data never had to be copied.
  uint64_t staged() const { return copy_ ? static_cast<uint64_t>(staged_) : UINT64_MAX; }
  // Copies the next piece; nothing to do when complete.
  void stage();

 private:
  const std::byte* data_ = nullptr;
  PoolBlock copy_;
  uint64_t offset_ = 0;
  int64_t rows_ = 1, length_ = 0, element_size_ = 1;
  int64_t staged_ = 0;
};

}  // namespace lockstep::comm
