// The ranks of one node over shared memory: every rank reads its slice straight from the others' pools.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/shm_fold.h"
#include "lockstep/comm/shm_protocol.h"

namespace lockstep::comm {

class ShmCommunicator final : public Communicator {
 public:
  using Options = ShmProtocol::Options;

  // Collectives other than the fold go by so many elements of a row at a time; what lies outside the pool is staged.
  static constexpr int64_t kChunkElements = int64_t{1} << 20;

  // As ShmProtocol.
  ShmCommunicator(Options options, const NodeMemory& memory, Pool& pool, Board* board);

  int rank() const override { return protocol_.rank(); }
  int size() const override { return protocol_.size(); }
  const char* backend() const override { return "shm"; }
  bool shares(const at::Tensor& tensor) const override { return protocol_.offset_of(tensor).has_value(); }

  std::shared_ptr<Work> fold(std::vector<at::Tensor> tensors, FoldOptions options) override;
  void progress() override;
  void all_reduce(const at::Tensor& tensor, ReduceOp op) override;
  void broadcast(const at::Tensor& tensor, int root) override;
  at::Tensor all_gather(const at::Tensor& tensor) override;
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op) override;
  void barrier() override;
  void abort(const std::string& reason) noexcept override { protocol_.abort(reason); }

 private:
  // Elements [first, first + count) of each of a tensor's rows, published by all ranks.
  struct Chunk {
    uint64_t call;
    int64_t first, count;
  };
  using Act = std::function<void(const Chunk&)>;

  void run(OpKind kind, uint32_t detail, const at::Tensor& tensor, int64_t rows, const Act& act, bool copy_back);
  std::byte* data_of(int rank, const Chunk& chunk, int64_t row = 0) const;

  ShmProtocol protocol_;
  std::function<void()> progress_ = [this] { progress(); };
  std::deque<std::shared_ptr<ShmFold>> folds_;  // under way, in the order of their calls
};

}  // namespace lockstep::comm
