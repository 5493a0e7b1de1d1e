#include "lockstep/checkpoint/formats/value.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

TEST(Value, IsMadeFromPlainValues) {
  EXPECT_EQ(Value().kind(), "None");
  EXPECT_EQ(Value(true).kind(), "true or false");
  EXPECT_EQ(Value(3).kind(), "a whole number");
  EXPECT_EQ(Value(size_t{3}).kind(), "a whole number");
  EXPECT_EQ(Value(0.5f).kind(), "a number");
  EXPECT_EQ(Value("text").kind(), "a string");
  EXPECT_EQ(Value(Bytes{"text"}).kind(), "bytes");
  EXPECT_EQ(Value(at::ones({2})).kind(), "a tensor");
  EXPECT_EQ(Value(List{1, 2}).kind(), "a list");
  EXPECT_EQ(Value(Tuple{{1, 2}}).kind(), "a tuple");
  EXPECT_EQ(Value(Dict{{"a", 1}}).kind(), "a dict");
  EXPECT_EQ(Value(Opaque{"a.B"}).kind(), "an object of an unknown class");
}

TEST(Value, RefusesNumbersThatNoCheckpointHolds) {
  EXPECT_EQ(*Value(uint64_t{1} << 62).get_if<int64_t>(), int64_t{1} << 62);
  EXPECT_THROW(Value(uint64_t{1} << 63), BugError);
}

TEST(Value, CopiesShareTensorsOnly) {
  Value original = List{at::zeros({2}), 1};
  Value copy = original;
  copy.get_if<List>()->push_back(2);
  (*copy.get_if<List>())[0].get_if<at::Tensor>()->fill_(7);
  EXPECT_EQ(original.items()->size(), 2u);
  EXPECT_EQ((*original.items())[0].get_if<at::Tensor>()->sum().item<float>(), 14);
}

TEST(Value, ListsAndTuplesHaveItems) {
  EXPECT_EQ(Value(List{1, 2}).items()->size(), 2u);
  EXPECT_EQ(Value(Tuple{{1}}).items()->size(), 1u);
  EXPECT_EQ(Value(Dict{}).items(), nullptr);
}

TEST(Dict, KeepsTheOrderOfInsertion) {
  Dict dict{{"z", 1}, {5, 2}, {"a", 3}};
  dict.set("z", 4);  // replaced in its place
  dict.set(int64_t{-1}, 5);
  std::string order;
  for (const auto& [key, value] : dict) order += key_text(key) + "=" + std::to_string(*value.get_if<int64_t>()) + " ";
  EXPECT_EQ(order, "z=4 5=2 a=3 -1=5 ");
}

TEST(Dict, TellsNumbersFromStrings) {
  const Dict dict{{"5", 1}, {5, 2}};
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_EQ(*dict.find("5")->get_if<int64_t>(), 1);
  EXPECT_EQ(*dict.find(int64_t{5})->get_if<int64_t>(), 2);
  EXPECT_EQ(dict.find("6"), nullptr);
}

TEST(Dict, FindsEachOfManyKeys) {
  for (const bool reserved : {false, true}) {
    Dict dict;
    if (reserved) dict.reserve(1000);
    for (int64_t i = 0; i < 1000; ++i) {
      dict.set(i << 32, i);
      dict.set(std::to_string(i), -i);
      dict.set(i << 32, i + 1);
    }
    EXPECT_EQ(dict.size(), 2000u);
    for (int64_t i = 0; i < 1000; ++i) {
      EXPECT_EQ(*dict.find(i << 32)->get_if<int64_t>(), i + 1);
      EXPECT_EQ(*dict.find(std::to_string(i))->get_if<int64_t>(), -i);
      EXPECT_EQ(dict.find((i << 32) + 1), nullptr);
    }
  }
}

TEST(Dict, ACopyIsADictOfItsOwn) {
  Dict dict{{"a", 1}};
  Dict copy = dict;
  copy.set("a", 2);
  copy.set("b", 3);
  EXPECT_EQ(*dict.find("a")->get_if<int64_t>(), 1);
  EXPECT_EQ(dict.size(), 1u);
  dict = Dict();
  EXPECT_TRUE(dict.empty());
  EXPECT_EQ(dict.begin(), dict.end());
  EXPECT_FALSE(dict.contains("a"));
  const Dict moved = std::move(copy);
  EXPECT_EQ(moved.size(), 2u);
}

TEST(Value, IsSmall) { EXPECT_LE(sizeof(Value), 40u); }

}  // namespace
}  // namespace lockstep::checkpoint
