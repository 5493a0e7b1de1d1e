#include "lockstep/parallel/replicas/replica_threads.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <stdexcept>

namespace lockstep::parallel {
namespace {

TEST(ReplicaThreads, AllRunAtOnceWithTheirNumbersAndTheCallersSettings) {
  ReplicaThreads threads;
  for (const size_t count : {4U, 2U, 3U}) {
    std::barrier together(static_cast<std::ptrdiff_t>(count));
    std::vector<size_t> numbers(count, 99);
    std::vector<int> with_graph(count, 1);
    const c10::AutoGradMode no_grad(false);
    threads.run(count, [&](size_t number) {
      together.arrive_and_wait();
      numbers[number] = ReplicaThreads::current();
      with_graph[number] = c10::GradMode::is_enabled() ? 1 : 0;
    });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(numbers[i], i);
    EXPECT_EQ(with_graph, std::vector<int>(count, 0));
  }
}

TEST(ReplicaThreads, ShareTheCallersThreadsAndLeaveThemAsTheyAre) {
  const int before = at::get_num_threads();
  at::set_num_threads(4);
  ReplicaThreads threads;
  std::vector<int> shares(2), more(8);
  threads.run(2, [&](size_t number) { shares[number] = at::get_num_threads(); });
  threads.run(8, [&](size_t number) { more[number] = at::get_num_threads(); });
  EXPECT_EQ(shares, std::vector<int>(2, 2));
  EXPECT_EQ(more, std::vector<int>(8, 1));
  EXPECT_EQ(at::get_num_threads(), 4);
  int later = 0;
  std::thread([&] { later = (at::internal::lazy_init_num_threads(), at::get_num_threads()); }).join();
  EXPECT_EQ(later, 4);
  at::set_num_threads(before);
}

TEST(ReplicaThreads, TheFirstErrorIsThrownOnceAllHaveEnded) {
  ReplicaThreads threads;
  std::atomic<int> ended = 0, failed = 0;
  const auto work = [&](size_t number) {
    ++ended;
    if (number == 0) throw ReplicaCancelled();
    if (number > 1) throw std::runtime_error("of " + std::to_string(number));
  };
  try {
    threads.run(4, work, [&] { ++failed; });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "of 2");
  }
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(failed, 3);
  threads.run(4, [](size_t) {});
}

}  // namespace
}  // namespace lockstep::parallel
