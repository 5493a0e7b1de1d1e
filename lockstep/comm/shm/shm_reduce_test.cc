// Reductions with threads as ranks: order, staging and what they leave behind. With processes: communicator_test.cc.
#include "lockstep/comm/shm/shm_reduce.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

using testing::NodeOfThreads;

TEST(ShmReduce, LaterCallsGoOnWhileEarlierOnesWait) {
  NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    std::vector<at::Tensor> tensors;
    std::vector<std::shared_ptr<Work>> works;
    for (int i = 0; i < 10; ++i) {
      tensors.push_back(at::full({20000}, comm.rank() + i, at::kFloat));  // outside the pool
      works.push_back(comm.fold({tensors.back()}, {.label = "test"}));
    }
    for (size_t i = works.size(); i-- > 0;) works[i]->wait();  // the last one first
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(works[static_cast<size_t>(i)]->done());
      EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(2 * i + 1).all().item<bool>());
    }
  });
  for (const int rank : {0, 1}) EXPECT_EQ(node.pool(rank).stats().in_use, 0u) << "rings and tables are let go";
}

// Many times what the staging ring holds, on one rank in the pool and on the others not; the last chunk is short.
TEST(ShmReduce, StagedAndUnstagedRanksWorkTogether) {
  NodeOfThreads node(3);
  const int64_t n = 3 * ShmReduce::kSlots * ShmReduce::kChunkBlocks * kBlockElements + 5000;
  node.run_ranks([&](int rank) {
    ShmCommunicator comm(node.options(rank), node.memory(), node.pool(rank), node.board());
    const c10::DataPtr memory = node.pool(rank).allocate(static_cast<size_t>(n) * sizeof(float));
    const at::Tensor inside = at::from_blob(memory.get(), {n}), outside = at::arange(n, at::kFloat);
    inside.copy_(outside);
    const at::Tensor& tensor = rank == 1 ? inside : outside;
    comm.fold({at::ones({3}), tensor, at::ones({5})}, {.label = "test"})->wait();
    EXPECT_TRUE(at::equal(tensor, 3 * at::arange(n, at::kFloat))) << rank;
    const auto held = node.pool(rank).stats().peak - static_cast<size_t>(n) * sizeof(float);
    EXPECT_LT(held,
              static_cast<size_t>(2 * ShmReduce::kSlots * ShmReduce::kChunkBlocks * kBlockElements) * sizeof(float))
        << "a staging ring is small";
  });
}

at::Tensor pool_tensor(Pool& pool, int64_t elements, float value) {
  const auto memory = std::make_shared<c10::DataPtr>(pool.allocate(static_cast<size_t>(elements) * sizeof(float)));
  return at::from_blob(
             memory->get(), {elements}, [memory](void*) {}, at::kFloat)
      .fill_(value);
}

TEST(ShmReduce, NobodyWritesToTheTensorsOfARankThatHasGivenUp) {
  NodeOfThreads node(2);
  ShmCommunicator zero(node.options(0), node.memory(), node.pool(0), node.board());
  ShmCommunicator one(node.options(1), node.memory(), node.pool(1), node.board());
  const at::Tensor own = pool_tensor(node.pool(1), 20000, 1);
  one.fold({own}, {.label = "test"});
  const auto work = zero.fold({pool_tensor(node.pool(0), 20000, 2)}, {.label = "test"});
  one.abort("enough");
  own.fill_(5);
  zero.progress();
  EXPECT_THROW(work->wait(), CommError);
  EXPECT_TRUE(own.eq(5).all().item<bool>());
}

TEST(ShmReduce, TheMemoryOfADestroyedCommunicatorsCallsServesNothingElse) {
  NodeOfThreads node(2);
  ShmCommunicator zero(node.options(0), node.memory(), node.pool(0), node.board());
  {
    ShmCommunicator one(node.options(1), node.memory(), node.pool(1), node.board());
    one.fold({pool_tensor(node.pool(1), 20000, 1)}, {.label = "test"});
    one.fold({at::ones({20000})}, {.label = "from outside the pool"});
  }
  std::vector<at::Tensor> later;
  for (int i = 0; i < 40; ++i) later.push_back(pool_tensor(node.pool(1), i < 20 ? 20000 : 100, 7));
  const auto inside = zero.fold({pool_tensor(node.pool(0), 20000, 2)}, {.label = "test"});
  const auto outside = zero.fold({at::ones({20000})}, {.label = "from outside the pool"});
  EXPECT_FALSE(outside->wait_for(std::chrono::milliseconds(50))) << "the other rank never does its share";
  for (const auto& tensor : later) EXPECT_TRUE(tensor.eq(7).all().item<bool>());
}

}  // namespace
}  // namespace lockstep::comm
