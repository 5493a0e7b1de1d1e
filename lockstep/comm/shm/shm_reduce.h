// Fold, all_reduce and reduce over shared memory: every rank reduces its slice straight from the others' pools and
// writes the result into the pools of all that get it.
//
// The tensors are one row of blocks (blocks.h). Where all of them lie in the pools there is one chunk, and rank k takes
// slice k of it. A tensor that lies elsewhere goes through its rank's staging ring, chunk by chunk: the rank stages
// chunk c + kSlots as soon as chunk c is back in the tensor, while all reduce what lies between; then every chunk is
// divided into slices.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/comm/blocks.h"
#include "lockstep/comm/shm/shm_work.h"

namespace lockstep::comm {

class ShmReduce : public ShmCollective {
 public:
  ShmReduce(ShmProtocol& protocol, const Call& call);

  void advance(bool may_finish) override;

  static constexpr int64_t kChunkBlocks = 32;  // of a staged call
  static constexpr int64_t kSlots = 4;         // chunks that a staging ring has room for

 protected:
  // Chunks of `chunk_blocks`, of which a ring holds `slots`. Publishes the call.
  ShmReduce(ShmProtocol& protocol, const Call& call, int64_t chunk_blocks, int64_t slots);

  // Does this rank's share of chunk reduced(), whose data all ranks have staged; whether it is done.
  virtual bool reduce_chunk();

  Slice chunk(uint64_t index) const;
  uint64_t reduced() const { return reduced_; }
  const std::vector<int64_t>& elements() const { return elements_; }
  at::ScalarType dtype() const { return dtype_; }
  ReduceOp op() const { return op_; }
  std::optional<at::ScalarType> wire() const { return wire_; }
  // Where `rank` has the block of a tensor that begins at element `first`, and what it adds there.
  std::byte* address(int rank, size_t tensor, int64_t first, int64_t block) const;
  Source source(int rank, size_t tensor, int64_t first, int64_t block) const;
  // Writes a reduced block, which lies in `from`, to all ranks that get it, and its square sum.
  void deliver(const std::byte* from, size_t tensor, int64_t first, int64_t count, int64_t block) const;

 private:
  // A rank's memory, in this process.
  struct View {
    const int64_t* table;
    std::byte *pool, *ring;
  };

  void lay_out_table(Call call);
  void publish(const Call& call);
  bool begin();
  bool step();
  bool stage();
  bool copy_back();
  bool reduce();
  void release();
  uint64_t reduced_by_all() const;
  void copy_chunk(uint64_t index, bool in) const;

  std::vector<at::Tensor> tensors_, leaves_;
  at::Tensor square_sums_;
  std::vector<int64_t> elements_;  // of each tensor
  at::ScalarType dtype_;
  ReduceOp op_;
  std::optional<at::ScalarType> wire_;
  int root_;  // the one rank that gets the result; -1: all
  int64_t blocks_, chunk_blocks_, slots_;
  // int64 [2 * tensors + 1]: where each lies, kInRing; where the square sums lie; where the leaf of each lies and of
  // what type, kNoLeaf.
  PoolBlock table_;
  PoolBlock ring_;
  PoolBlock sums_block_;     // what stands for square sums outside the pool
  std::vector<View> views_;  // by rank, once all have published
  bool chunked_ = false;     // some rank stages
  uint64_t chunks_ = 0;
  uint64_t staged_ = 0, reduced_ = 0, returned_ = 0;  // chunks
};

}  // namespace lockstep::comm
