// Folds with threads as ranks: order, copies and square sums. With processes: communicator_test.cc.
#include "lockstep/comm/shm_fold.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lockstep/comm/shm_communicator.h"

namespace lockstep::comm {
namespace {

TEST(ShmFold, LaterFoldsGoOnWhileEarlierOnesWait) {
  NodeMemory memory = NodeMemory::create(2);
  const Mapping board(memory.board.get());
  std::vector<std::unique_ptr<Pool>> pools;
  for (auto& pool : memory.pools) {
    pool = create_memfd("small-pool", size_t{64} << 20);
    pools.push_back(std::make_unique<Pool>(Descriptor(dup(pool.get()))));
  }
  const auto rank_body = [&](int rank) {
    ShmCommunicator comm({.rank = rank, .size = 2}, memory, *pools[static_cast<size_t>(rank)],
                         Board::attach(board.data()));
    std::vector<at::Tensor> tensors;
    std::vector<std::shared_ptr<Work>> works;
    for (int i = 0; i < 10; ++i) {
      tensors.push_back(at::full({20000}, rank + i, at::kFloat));  // outside the pool: folded through copies
      works.push_back(comm.fold({tensors.back()}, {.label = "test", .square_sums = {}}));
    }
    for (size_t i = works.size(); i-- > 0;) works[i]->wait();  // the last one first
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(works[static_cast<size_t>(i)]->done());
      EXPECT_EQ(tensors[static_cast<size_t>(i)].min().item<float>(), static_cast<float>(2 * i + 1));
      EXPECT_EQ(tensors[static_cast<size_t>(i)].max().item<float>(), static_cast<float>(2 * i + 1));
    }
  };
  std::thread other(rank_body, 1);
  rank_body(0);
  other.join();
  for (const auto& pool : pools) EXPECT_EQ(pool->stats().in_use, 0u) << "folds let go of their copies and tables";
}

}  // namespace
}  // namespace lockstep::comm
