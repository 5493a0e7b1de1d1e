#include "lockstep/checkpoint/formats/pickle_heap.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

TEST(PickleHeap, FindsContainersByKind) {
  MemoryBudget budget(1 << 20);
  const PickleBytes none("");
  Heap heap(none, budget);
  const Item list = heap.add(Container::Kind::kList, std::vector<Item>{int64_t{3}});
  const Item dict = heap.add(Container::Kind::kDict);
  ASSERT_NE(heap.container(list, Container::Kind::kList), nullptr);
  EXPECT_EQ(std::get<int64_t>(heap.container(list, Container::Kind::kList)->items[0]), 3);
  EXPECT_EQ(heap.container(list, Container::Kind::kDict), nullptr);
  EXPECT_NE(heap.container(dict, Container::Kind::kDict), nullptr);
  EXPECT_EQ(heap.container(Item(int64_t{0}), Container::Kind::kList), nullptr);
}

TEST(PickleHeap, TextIsASliceOfThePickle) {
  MemoryBudget budget(1 << 20);
  const PickleBytes bytes("..abc..");
  const Heap heap(bytes, budget);
  EXPECT_EQ(heap.text(Text{{2, 3}}), "abc");
}

TEST(PickleHeap, EverythingIsCharged) {
  const auto most = [](const auto& add) {
    MemoryBudget budget(1 << 20);
    const PickleBytes none("");
    Heap heap(none, budget);
    int count = 0;
    try {
      for (; count < 1 << 20; ++count) add(heap);
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.text, "would take more than 1 MiB of memory besides its tensors");
    }
    return count;
  };
  const std::vector<Item> items(100);
  EXPECT_LT(most([](Heap& heap) { heap.add(Container::Kind::kTuple); }), 1 << 15);
  EXPECT_LT(most([&](Heap& heap) { heap.add(Container::Kind::kTuple, items); }), (1 << 20) / 1600);
  EXPECT_LT(most([](Heap& heap) { heap.add(at::Tensor(at::empty({0}))); }), (1 << 20) / 200);
  EXPECT_LT(most([](Heap& heap) { heap.add(HeapStorage{at::empty({0}).storage(), at::kFloat}); }), (1 << 20) / 200);
  EXPECT_LT(most([](Heap& heap) { heap.add(NumpyDtype{}); }), 1 << 15);
  EXPECT_LT(most([](Heap& heap) { heap.add(NumpyArray{}); }), 1 << 16);
  EXPECT_LT(most([](Heap& heap) { heap.add_unknown(std::string(1000, 'x')); }), 1 << 10);
}

TEST(PickleHeap, AContainerThatGrowsIsCharged) {
  MemoryBudget budget(1 << 20);
  const PickleBytes none("");
  Heap heap(none, budget);
  const ContainerRef list = heap.add(Container::Kind::kList);
  const std::vector<Item> one(1);
  int count = 0;
  EXPECT_THROW(
      {
        for (; count < 1 << 20; ++count) heap.append(heap.containers[list.index], one);
      },
      Fault);
  EXPECT_LE(count, (1 << 20) / 32);
}

}  // namespace
}  // namespace lockstep::checkpoint
