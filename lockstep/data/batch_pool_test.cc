#include "lockstep/data/batch_pool.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace lockstep::data {
namespace {

const std::vector<Field> kFields = {{"data", at::kFloat, {2, 3}}, {"target", at::kLong, {}}};

TEST(BatchPool, GivesBlocksOfOneSize) {
  BatchPool pool(kFields, 4, 8);
  EXPECT_EQ(pool.block_bytes(), 4 * (6 * 4 + 8));
  const auto block = pool.take();
  EXPECT_EQ(block->batch().data().sizes(), at::IntArrayRef({4, 2, 3}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block->batch().data().data_ptr()) % 64, 0u);
}

// As pinned memory, where a GPU trains.
TEST(BatchPool, AsksForTheMemoryOfItsBlocksOnceEach) {
  std::vector<at::Tensor> made;
  const BatchMemory memory = [&](at::IntArrayRef shape, at::ScalarType dtype, at::MemoryFormat format) {
    made.push_back(at::empty(shape, at::TensorOptions(dtype), format));
    return made.back();
  };
  BatchPool pool(kFields, 4, 8, memory);
  for (int i = 0; i < 3; ++i) {
    const auto block = pool.take();
    ASSERT_EQ(made.size(), 2u) << "the block comes back";
    EXPECT_EQ(block->batch().data().data_ptr(), made[0].data_ptr());
  }
  EXPECT_EQ(made[0].sizes(), at::IntArrayRef({4, 2, 3}));
  EXPECT_EQ(made[1].scalar_type(), at::kLong);
  const auto one = pool.take(), other = pool.take();
  EXPECT_EQ(made.size(), 4u);
}

TEST(BatchPool, GivesNoBlockTwiceAtATime) {
  BatchPool pool(kFields, 4, 8);
  std::set<const void*> seen;
  std::vector<std::shared_ptr<SampleRows>> taken;
  for (int i = 0; i < 5; ++i) {
    taken.push_back(pool.take());
    EXPECT_TRUE(seen.insert(taken.back()->batch().data().data_ptr()).second);
  }
  EXPECT_EQ(pool.blocks(), 5);
  taken.clear();
  for (int i = 0; i < 5; ++i) taken.push_back(pool.take());
  EXPECT_EQ(pool.blocks(), 5) << "those that came back";
}

TEST(BatchPool, MakesTheUsualBlocksBeforeItUsesOneAgain) {
  BatchPool pool(kFields, 4, 8, {}, 3);
  std::set<const void*> seen;
  for (int i = 0; i < 10; ++i) seen.insert(pool.take()->batch().data().data_ptr());
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(pool.blocks(), 3);
}

TEST(BatchPool, ABatchOwnsItsBlock) {
  BatchPool pool(kFields, 4, 8);
  Batch batch = batch_in(pool.take(), 3);
  EXPECT_EQ(batch.data().sizes(), at::IntArrayRef({3, 2, 3}));
  EXPECT_EQ(batch.target().sizes(), at::IntArrayRef({3}));
  const void* memory = batch.data().data_ptr();
  at::Tensor last = batch.target().slice(0, 1);  // one view is enough
  batch = {};
  EXPECT_NE(pool.take()->batch().data().data_ptr(), memory);
  last.reset();
  const auto first = pool.take(), second = pool.take();
  EXPECT_TRUE(first->batch().data().data_ptr() == memory || second->batch().data().data_ptr() == memory);
  EXPECT_EQ(pool.blocks(), 2);
}

TEST(BatchPool, ASmallTensorDoesNotKeepItsBlock) {
  BatchPool pool({{"data", at::kFloat, {3, 4, 4}, /*channels_last=*/true}, {"target", at::kLong, {}}}, 4, 8);
  auto block = pool.take();
  const void* memory = block->batch().data().data_ptr();
  block->row(2)[1].fill_(5);
  const at::Tensor target = batch_in(block, 3).target();
  block.reset();
  block = pool.take();
  EXPECT_EQ(block->batch().data().data_ptr(), memory);
  block->row(2)[1].fill_(6);
  EXPECT_EQ(target.sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(target[2].item<int64_t>(), 5);
}

TEST(BatchPool, FreesWhatNobodyWillNeed) {
  BatchPool pool(kFields, 4, 2);
  std::vector<std::shared_ptr<SampleRows>> taken;
  for (int i = 0; i < 5; ++i) taken.push_back(pool.take());
  EXPECT_EQ(pool.blocks(), 5);
  taken.clear();
  EXPECT_EQ(pool.blocks(), 2);
}

TEST(BatchPool, ItsBatchesMayOutliveIt) {
  Batch batch;
  {
    BatchPool pool(kFields, 4, 8);
    batch = batch_in(pool.take(), 4);
    batch.target().fill_(7);
  }
  EXPECT_EQ(batch.target().sum().item<int64_t>(), 28);
  std::thread([mine = std::move(batch)]() mutable { mine = {}; }).join();
}

TEST(BatchPool, ServesSeveralThreads) {
  BatchPool pool(kFields, 4, 8);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&pool, thread] {
      for (int i = 0; i < 200; ++i) {
        Batch batch = batch_in(pool.take(), 4);
        batch.target().fill_(thread);
        EXPECT_TRUE(batch.target().eq(thread).all().item<bool>());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(pool.blocks(), 4);
}

}  // namespace
}  // namespace lockstep::data
