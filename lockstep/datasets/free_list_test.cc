#include "lockstep/datasets/free_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep::datasets {
namespace {

TEST(FreeList, GivesBackWhatWasGivenBack) {
  FreeList<int> list;
  int* first = nullptr;
  {
    const auto one = list.take(), two = list.take();
    EXPECT_NE(one.get(), two.get());
    first = one.get();
    *first = 7;
  }
  const auto again = list.take(), other = list.take();
  EXPECT_TRUE(again.get() == first || other.get() == first);
  EXPECT_EQ(*first, 7);
}

TEST(FreeList, GivesNoObjectToTwoThreads) {
  struct Owned {
    std::atomic<int> owners{0};
  };
  FreeList<Owned> list;
  std::atomic<int> shared{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        const auto object = list.take();
        if (++object->owners > 1) ++shared;
        --object->owners;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared, 0);
}

}  // namespace
}  // namespace lockstep::datasets
