#include "lockstep/checkpoint/contents/describe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/hash.h"

namespace lockstep::checkpoint {
namespace {

TEST(Describe, NamesEveryLeafByItsPathInOrder) {
  const Value value =
      Dict{{"z", List{1, Tuple{{2.5, "x"}}}}, {"a", Dict{{0, Value()}, {"b", true}}}, {"empty", List{}}};
  EXPECT_EQ(
      describe(value).dump(),
      R"({"z/0":{"value":1},"z/1/0":{"value":2.5},"z/1/1":{"value":"x"},"a/0":{"value":null},"a/b":{"value":true}})");
}

TEST(Describe, TensorsByTypeShapeAndHash) {
  const at::Tensor tensor = at::ones({2, 1}, at::kShort);
  const auto leaf = describe(Dict{{"t", tensor}})["t"];
  EXPECT_EQ(leaf["dtype"], "int16");
  EXPECT_EQ(leaf["shape"].dump(), "[2,1]");
  EXPECT_EQ(leaf["sha256"], sha256_hex(std::string("\1\0\1\0", 4)));
}

TEST(Describe, ScalarsHaveAnEmptyShape) { EXPECT_EQ(describe(Dict{{"t", at::ones({})}})["t"]["shape"].dump(), "[]"); }

TEST(Describe, WhatJsonHasNoWordFor) {
  const Value value = List{std::nan(""), HUGE_VAL, -HUGE_VAL, Bytes{std::string("\x00\xff", 2)}};
  EXPECT_EQ(describe(value).dump(),
            R"({"0":{"value":"nan"},"1":{"value":"inf"},"2":{"value":"-inf"},"3":{"value":"00ff"}})");
}

TEST(Describe, StatisticsWhereTheyAreAskedFor) {
  const Value value =
      Dict{{"t", at::tensor({1, 2, 3}, at::kInt)}, {"f", at::full({1}, 0.5)}, {"e", at::empty({0})}, {"n", 1}};
  const auto all = describe(value, {.statistics = true});
  const auto statistics = [](nlohmann::ordered_json leaf) {
    for (const char* name : {"dtype", "shape", "sha256"}) leaf.erase(name);
    return leaf.dump();
  };
  EXPECT_EQ(statistics(all["t"]), R"({"bytes":12,"min":1,"max":3,"mean":2.0,"std":1.0,"nan":0,"inf":0})");
  EXPECT_EQ(statistics(all["f"]), R"({"bytes":4,"min":0.5,"max":0.5,"mean":0.5,"std":null,"nan":0,"inf":0})");
  EXPECT_EQ(statistics(all["e"]), R"({"bytes":0,"min":null,"max":null,"mean":null,"std":null,"nan":0,"inf":0})");
  EXPECT_EQ(all["n"].dump(), R"({"value":1})");
}

TEST(Describe, WhatIsChosen) {
  const Value value = Dict{{"model", Dict{{"a", 1}, {"b", 2}}}, {"epoch", 4}};
  EXPECT_EQ(describe(value, {.only = PathChoice("model/")}).dump(), R"({"model/a":{"value":1},"model/b":{"value":2}})");
  EXPECT_EQ(describe(value, {.only = PathChoice("*b")}).dump(), R"({"model/b":{"value":2}})");
}

TEST(TensorSha256, DependsOnValuesNotStrides) {
  const at::Tensor tensor = at::arange(24).reshape({2, 3, 2, 2});
  EXPECT_EQ(tensor_sha256(tensor), tensor_sha256(tensor.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_NE(tensor_sha256(tensor), tensor_sha256(tensor.transpose(0, 1)));
}

}  // namespace
}  // namespace lockstep::checkpoint
