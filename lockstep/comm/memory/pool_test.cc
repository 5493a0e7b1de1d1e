#include "lockstep/comm/memory/pool.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

std::unique_ptr<Pool> make_pool(size_t capacity = size_t{1} << 30) {
  return std::make_unique<Pool>(create_memfd("pool", capacity));
}

TEST(Pool, BlocksAreAlignedInsideAndKept) {
  const auto pool = make_pool();
  void* first = nullptr;
  {
    const auto data = pool->allocate(1000);
    first = data.get();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_TRUE(pool->offset_of(first, 1000));
    EXPECT_FALSE(pool->offset_of(&first, 8));
    EXPECT_EQ(pool->stats().in_use, 1024u + 64u) << "the block and what tells whose it is";
  }
  EXPECT_EQ(pool->stats().in_use, 0u);
  EXPECT_EQ(pool->allocate(1000).get(), first);
  EXPECT_EQ(pool->allocate(0).get(), nullptr);
}

TEST(Pool, HoldsAtMostThePeakAndAFifth) {
  const auto pool = make_pool();
  std::mt19937 random(3);
  std::vector<c10::DataPtr> live;
  // Ever larger tensors, so that no kept block serves the next: without trimming, all of them would stay.
  for (size_t mib = 1; mib < 40; ++mib) {
    live.clear();
    for (int i = 0; i < 3; ++i) live.push_back(pool->allocate((mib << 20) + random() % 100000));
    const auto stats = pool->stats();
    EXPECT_LE(stats.held, stats.peak + std::max(stats.peak / 5, size_t{16} << 20) + (size_t{2} << 20))
        << "at " << mib << " MiB";
  }
  EXPECT_GT(pool->stats().holes, 0u);
}

TEST(Pool, ExhaustionIsAnErrorThatSaysSo) {
  const auto pool = make_pool(size_t{1} << 20);
  const auto half = pool->allocate(600 << 10);
  try {
    const auto more = pool->allocate(600 << 10);
    FAIL() << "1 MiB held 1.2 MiB";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has no room for a tensor of 600"));
  }
  const auto rest = pool->allocate(300 << 10);  // the pool goes on working
  EXPECT_NE(rest.get(), nullptr);
}

TEST(Pool, MoreThanTheMachineHasIsAnErrorBeforeItIsTouched) {
  const size_t machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto pool = make_pool(8 * machine);
  EXPECT_THROW(pool->allocate(4 * machine), IoError);
  EXPECT_NE(pool->allocate(64).get(), nullptr);
}

// A network's steps allocate the same sizes again and again and free them in other orders. After the first steps the
// pool no longer takes memory from the system.
TEST(Pool, AStepMeetsTheBlocksOfTheStepBefore) {
  const auto pool = make_pool();
  std::mt19937 random(5);
  std::vector<size_t> sizes(60);
  for (auto& size : sizes) size = random() % 8 == 0 ? 1 + random() % (6 << 20) : 1 + random() % 20000;
  Pool::Stats steady;
  for (int step = 0; step < 60; ++step) {
    std::vector<c10::DataPtr> live;
    for (const size_t size : sizes) {
      live.push_back(pool->allocate(size));
      if (random() % 3 == 0) live.erase(live.begin() + static_cast<long>(random() % live.size()));
    }
    if (step == 30) steady = pool->stats();
  }
  EXPECT_EQ(pool->stats().holes, steady.holes);
  EXPECT_EQ(pool->stats().held, steady.held);
}

TEST(Pool, ThreadsMayAllocateAtOnce) {
  const auto pool = make_pool();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      std::mt19937 random(t);
      std::vector<c10::DataPtr> live;
      for (int i = 0; i < 2000; ++i) {
        live.push_back(pool->allocate(1 + random() % 5000));
        *static_cast<unsigned*>(live.back().get()) = t;
        if (live.size() > 20) {
          EXPECT_EQ(*static_cast<unsigned*>(live.front().get()), t);
          live.erase(live.begin());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool->stats().in_use, 0u);
}

// In a process of its own, for there is no way back from an installed allocator.
TEST(PoolDeathTest, TakesThePlaceOfTheCpuAllocator) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const Pool* pool = Pool::install(make_pool());
        const at::Tensor t = at::ones({1000});
        const bool inside = pool->offset_of(t.data_ptr(), t.nbytes()).has_value();
        _exit(inside && t.sum().item<float>() == 1000 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// The exit code of a process in which the pool is installed after tensors were made, oneDNN's own layout among them: it
// frees by bare address.
int drop_blocks_from_before() {
  c10::Allocator* const former = c10::GetCPUAllocator();
  at::Tensor plain = at::ones({1000});
  at::Tensor dense = at::ones({2, 16, 8, 8}).to_mkldnn();
  void* const raw = former->raw_allocate(100);
  Pool::install(make_pool());
  at::Tensor later = dense.add(dense);
  plain.reset();
  dense.reset();
  c10::GetCPUAllocator()->raw_deallocate(raw);
  const bool right = later.to_dense().sum().item<float>() == 2 * 2 * 16 * 8 * 8;
  later.reset();
  return right ? 0 : 1;
}

TEST(PoolDeathTest, BlocksFromBeforeGoBackToTheFormerAllocator) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(_exit(drop_blocks_from_before()), testing::ExitedWithCode(0), "");
}

// A child forked while another thread allocates: it makes tensors, and drops those of its parent.
int allocate_in_a_child(at::Tensor& plain, at::Tensor& dense) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a lock that nobody releases
    at::Tensor own = at::full({1 << 20}, 2.0f);
    const bool right = own[7].item<float>() == 2;
    plain.reset();
    dense.reset();
    own.reset();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// The exit code of a process whose children allocate.
int fork_children() {
  at::set_num_threads(1);
  const Pool* pool = Pool::install(make_pool());
  at::Tensor plain = at::ones({1000});
  at::Tensor dense = at::ones({2, 16, 8, 8}).to_mkldnn();
  std::atomic<bool> ended = false;
  std::thread other([&] {
    while (!ended) c10::GetCPUAllocator()->allocate(5000);
  });
  int failed = 0;
  for (int i = 0; i < 20; ++i) failed += allocate_in_a_child(plain, dense) == 0 ? 0 : 1;
  ended = true;
  other.join();
  const bool kept = pool->offset_of(plain.data_ptr(), 4) && plain.sum().item<float>() == 1000;
  return failed == 0 && kept ? 0 : 1;
}

TEST(PoolDeathTest, AForkedChildAllocatesFromTheFormerAllocator) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(_exit(fork_children()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep::comm
