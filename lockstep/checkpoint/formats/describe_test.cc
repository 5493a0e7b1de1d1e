#include "lockstep/checkpoint/formats/describe.h"

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

TEST(TensorSha256, DependsOnValuesNotStrides) {
  const at::Tensor tensor = at::arange(24).reshape({2, 3, 2, 2});
  EXPECT_EQ(tensor_sha256(tensor), tensor_sha256(tensor.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_NE(tensor_sha256(tensor), tensor_sha256(tensor.transpose(0, 1)));
}

}  // namespace
}  // namespace lockstep::checkpoint
