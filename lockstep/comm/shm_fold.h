// One fold under way over shared memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/shm_protocol.h"

namespace lockstep::comm {

class ShmFold final : public Work {
 public:
  // Publishes the tensors where they lie; those outside the pool as copies in it. `progress` moves all folds on, this
  // one among them, in the order of their calls.
  ShmFold(ShmProtocol& protocol, std::vector<at::Tensor> tensors, FoldOptions options,
          const std::function<void()>& progress);

  bool done() override;
  void wait() override;

  // Moves it on: reduces this rank's slice once all ranks have published, lets the tensors go once all have finished.
  void advance();
  bool reduced() const { return reduced_; }
  bool settled() const { return settled_; }

 private:
  // A tensor of the caller's, and what stands for it in the pool: itself or a copy.
  struct Part {
    at::Tensor original, shared;
  };

  void add(const at::Tensor& tensor, bool copy_in);
  void reduce_slice();
  void settle();
  const int64_t* table_of(int rank) const;

  ShmProtocol& protocol_;
  const std::function<void()>& progress_;
  std::vector<Part> parts_;        // the tensors, then, if asked for, the square sums
  std::vector<int64_t> elements_;  // of each tensor
  at::ScalarType dtype_;
  bool square_sums_;
  at::Tensor table_;  // int64 [parts], in the pool: where each part lies
  std::string what_;
  uint64_t call_ = 0;
  bool reduced_ = false;
  bool settled_ = false;
};

}  // namespace lockstep::comm
