// Fold, all_reduce and reduce over shared memory: every rank reduces its slice of the data, reading it from all ranks'
// pools, and writes the result into the pools of all ranks that get it. shm_reduce.cc explains the algorithm.
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

  static constexpr int64_t kChunkBlocks = 32;  // blocks in a chunk of a staged call
  static constexpr int64_t kSlots = 4;         // chunks in a staging ring

 protected:
  // Publishes the call, with chunks of `chunk_blocks` blocks and staging rings of `slots` chunks.
  ShmReduce(ShmProtocol& protocol, const Call& call, int64_t chunk_blocks, int64_t slots);

  // Does this rank's share of chunk reduced(), which all ranks have staged. False if it has to wait: it is called
  // again.
  virtual bool reduce_chunk();

  Slice chunk(uint64_t index) const;
  uint64_t reduced() const { return reduced_; }
  const std::vector<int64_t>& elements() const { return elements_; }
  at::ScalarType dtype() const { return dtype_; }
  ReduceOp op() const { return op_; }
  std::optional<at::ScalarType> wire() const { return wire_; }
  // The block of a tensor that begins at element `first`, on `rank`: its address, and the values that the rank adds,
  // which are elsewhere if they are a low-precision leaf.
  std::byte* address(int rank, size_t tensor, int64_t first, int64_t block) const;
  Source source(int rank, size_t tensor, int64_t first, int64_t block) const;
  // Copies a reduced block from `from` to all ranks that get it, and computes its square sum.
  void deliver(const std::byte* from, size_t tensor, int64_t first, int64_t count, int64_t block) const;

 private:
  // The addresses, in this process, of a rank's table, pool and staging ring.
  struct View {
    const int64_t* table;
    std::byte *pool, *ring;
  };

  void lay_out_table(Call call);
  void publish(const Call& call);
  bool begin();
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
  // int64 [2 * tensors + 1]: each tensor's offset in the pool, or kInRing; the offset of the square sums; each tensor's
  // leaf_entry(), or kNoLeaf.
  PoolBlock table_;
  PoolBlock ring_;
  PoolBlock sums_block_;     // stands in for square sums outside the pool
  std::vector<View> views_;  // by rank; empty until all ranks have published
  bool chunked_ = false;     // whether some rank stages
  uint64_t chunks_ = 0;
  uint64_t staged_ = 0, reduced_ = 0, returned_ = 0;  // numbers of chunks: in the ring, reduced, back in the tensors
};

}  // namespace lockstep::comm
