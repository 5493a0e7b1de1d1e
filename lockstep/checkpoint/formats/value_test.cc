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

}  // namespace
}  // namespace lockstep::checkpoint
