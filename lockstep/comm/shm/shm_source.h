// A rank's input in memory that the other ranks can read: the tensor's own memory if that is in the pool, otherwise a
// copy in the pool. The copy is staged piece by piece, while the others already read its beginning.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/shm/shm_node.h"

namespace lockstep::comm {

class ShmSource {
 public:
  static constexpr int64_t kPieceBytes = int64_t{1} << 20;

  ShmSource() = default;  // no data; complete
  // `tensor` is contiguous, with `rows` rows of equal length. stage() copies one piece of each row at a time.
  ShmSource(ShmNode& node, const at::Tensor& tensor, int64_t rows);

  uint64_t offset() const { return offset_; }
  bool complete() const { return staged_ == length_; }
  // Elements of each row in the pool so far; UINT64_MAX if the data needs no copy.
  uint64_t staged() const { return copy_ ? static_cast<uint64_t>(staged_) : UINT64_MAX; }
  // Copies the next piece, if any is left.
  void stage();

 private:
  const std::byte* data_ = nullptr;
  PoolBlock copy_;
  uint64_t offset_ = 0;
  int64_t rows_ = 1, length_ = 0, element_size_ = 1;
  int64_t staged_ = 0;
};

}  // namespace lockstep::comm
