#include "lockstep/checkpoint/formats/pickle_heap.h"

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

TEST(PickleHeap, FindsContainersByKind) {
  Heap heap;
  const Item list = heap.add(Container::Kind::kList, {Item(int64_t{3})});
  const Item dict = heap.add(Container::Kind::kDict);
  ASSERT_NE(heap.container(list, Container::Kind::kList), nullptr);
  EXPECT_EQ(std::get<int64_t>(heap.container(list, Container::Kind::kList)->items[0]), 3);
  EXPECT_EQ(heap.container(list, Container::Kind::kDict), nullptr);
  EXPECT_NE(heap.container(dict, Container::Kind::kDict), nullptr);
  EXPECT_EQ(heap.container(Item(int64_t{0}), Container::Kind::kList), nullptr);
}

TEST(PickleHeap, TextIsASliceOfThePickle) {
  Heap heap;
  heap.bytes = "..abc..";
  EXPECT_EQ(heap.text(Text{{2, 3}}), "abc");
}

}  // namespace
}  // namespace lockstep::checkpoint
