#include "lockstep/checkpoint/formats/pickle_values.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using Kind = Container::Kind;

constexpr ValueBounds kBounds{.tensor_bytes = 1000};

struct TestBytes {
  PickleBytes own_bytes;
};

struct TestHeap : TestBytes, Heap {
  explicit TestHeap(std::string_view bytes = "") : TestBytes{PickleBytes(bytes)}, Heap(own_bytes, own) {}
  using Heap::add;
  ContainerRef add(Kind kind, const std::vector<Item>& items) { return Heap::add(kind, items); }
  MemoryBudget own{1 << 20};
};

std::string fault_of(Heap& heap, const Item& item) {
  try {
    to_value(heap, item, kBounds);
  } catch (const Fault& fault) {
    return fault.text;
  }
  return "no fault";
}

// n lists, each in the next one.
Item nested(TestHeap& heap, int n) {
  Item item = heap.add(Kind::kList);
  for (int i = 1; i < n; ++i) item = heap.add(Kind::kList, {item});
  return item;
}

TEST(PickleValues, BuildsATree) {
  TestHeap heap("key\xc3\xbf");
  const Item list = heap.add(Kind::kTuple, {int64_t{1}, 2.5, None{}, Latin1Text{{3, 2}}, RawBytes{{0, 1}}});
  const Item dict = heap.add(Kind::kDict, {Text{{0, 3}}, list, true, list, int64_t{1}, false});
  EXPECT_EQ(describe(to_value(heap, dict, kBounds)).dump(),
            R"({"key/0":{"value":1},"key/1":{"value":2.5},"key/2":{"value":null},"key/3":{"value":"ff"},)"
            R"("key/4":{"value":"6b"},"1":{"value":false}})");
}

TEST(PickleValues, SharedListsMayNotExplode) {
  TestHeap heap;
  Item item = heap.add(Kind::kList);
  for (int i = 0; i < 60; ++i) item = heap.add(Kind::kList, {item, item, item});
  EXPECT_EQ(fault_of(heap, item), "shared lists that expand to more than memory may hold");
}

TEST(PickleValues, SharedTextMayNotExplode) {
  const std::string text(32'000, 'x');
  TestHeap heap(text);
  const std::vector<Item> many(40, Text{{0, 32'000}});
  EXPECT_THAT(fault_of(heap, heap.add(Kind::kList, many)), HasSubstr("expand to more than"));
}

TEST(PickleValues, SharedTensorsMayNotExplode) {
  TestHeap heap;
  heap.tensors.push_back(at::zeros({100}));
  const Item tensor = TensorRef{0};
  EXPECT_EQ(fault_of(heap, heap.add(Kind::kList, {tensor, tensor})), "no fault");
  EXPECT_EQ(fault_of(heap, heap.add(Kind::kList, {tensor, tensor, tensor})),
            "tensors that expand to more than 1000 bytes");
}

// Whoever lists the leaves by their paths, as `inspect` does, has all these names at once.
TEST(PickleValues, PathsMayNotExplode) {
  const std::string text(3000, 'x');
  TestHeap heap(text);
  const Item name = Text{{0, 3000}};
  Item item = heap.add(Kind::kList, std::vector<Item>(10));
  for (int i = 0; i < 20; ++i) item = heap.add(Kind::kDict, {name, item});
  EXPECT_EQ(fault_of(heap, item), "no fault");
  item = heap.add(Kind::kList, std::vector<Item>(10));
  for (int i = 0; i < 40; ++i) item = heap.add(Kind::kDict, {name, item});
  EXPECT_EQ(fault_of(heap, item), "names that expand to more than memory may hold");
}

TEST(PickleValues, UnknownThingsAreOpaque) {
  TestHeap heap;
  const Item first = heap.add_unknown("a.B"), second = heap.add_unknown("c.D");
  const Item dict = heap.add(Kind::kDict, {first, int64_t{1}, first, int64_t{2}, int64_t{3}, second});
  EXPECT_EQ(describe(to_value(heap, dict, kBounds)).dump(),
            R"({"a.B":{"value":1},"a.B 1":{"value":2},"3":{"opaque":"c.D"}})");
}

TEST(PickleValues, DepthIsBounded) {
  TestHeap heap;
  EXPECT_EQ(fault_of(heap, nested(heap, 990)), "no fault");
  EXPECT_EQ(fault_of(heap, nested(heap, 1001)), "lists and dicts nested more than 1000 deep");
}

TEST(PickleValues, DepthIsBoundedThroughSharedListsToo) {
  TestHeap heap;
  const Item shallow = nested(heap, 600);
  Item deep = heap.add(Kind::kList, {shallow});
  for (int i = 0; i < 600; ++i) deep = heap.add(Kind::kList, {deep});
  const Item both = heap.add(Kind::kTuple, {shallow, deep});  // measured at its shallow place first
  EXPECT_EQ(fault_of(heap, both), "lists and dicts nested more than 1000 deep");
}

TEST(PickleValues, NothingMayHoldItself) {
  TestHeap heap;
  const ContainerRef list = heap.add(Kind::kList);
  heap.containers[list.index].items.push_back(list);
  EXPECT_EQ(fault_of(heap, list), "a list or dict that holds itself");
}

TEST(PickleValues, OnlyValuesAndPlainKeysPass) {
  TestHeap heap("\xe2\x82\xac");
  EXPECT_EQ(fault_of(heap, heap.add(Kind::kDict, {2.5, None{}})),
            "a dict whose keys are neither strings nor whole numbers");
  EXPECT_EQ(fault_of(heap, Global{Global::Kind::kDict}), "a class where a value should be");
  EXPECT_EQ(fault_of(heap, heap.add(NumpyArray{})), "a numpy array without its content");
  EXPECT_EQ(fault_of(heap, StorageRef{0}), "a storage where a value should be");
  EXPECT_EQ(fault_of(heap, Latin1Text{{0, 3}}), "bytes that hold more than bytes");
  EXPECT_EQ(*to_value(heap, Global{Global::Kind::kDtype, at::kHalf}, kBounds).get_if<std::string>(), "torch.float16");
}

}  // namespace
}  // namespace lockstep::checkpoint
