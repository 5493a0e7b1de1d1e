#include "lockstep/comm/reduce.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/fold_tree.h"

namespace lockstep::comm {
namespace {

using at::Tensor;

// The tree by libtorch's own additions, each node rounded to the dtype.
Tensor expected_sum(const std::vector<Tensor>& values) {
  LeafFold<Tensor> fold;
  const auto add = [](const Tensor& a, const Tensor& b) {
    return a.is_floating_point() && a.element_size() == 2 ? (a.to(at::kFloat) + b.to(at::kFloat)).to(a.scalar_type())
                                                          : a + b;
  };
  for (const auto& value : values) fold.push(value, add);
  return fold.finish(add);
}

std::vector<Source> sources_of(const std::vector<Tensor>& values) {
  std::vector<Source> out;
  for (const auto& value : values) out.push_back({value.data_ptr()});
  return out;
}

void reduce(at::ScalarType dtype, ReduceOp op, const std::vector<Source>& sources, void* target, int64_t count,
            std::optional<at::ScalarType> wire = {}) {
  FoldScratch scratch;
  reduce_block(dtype, op, sources, target, count, scratch, wire);
}

Tensor random(at::ScalarType dtype, int64_t n) {
  return at::isFloatingType(dtype) ? at::randn({n}).to(dtype) : at::randint(0, 9, {n}).to(dtype);
}

class ReduceBlock : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ReduceBlock, SumsInTreeOrder) {
  at::manual_seed(1);
  for (const int64_t count : {0, 1, 15, 16, 17, 1000, 4096}) {
    for (const size_t sources : {1, 2, 3, 4, 5, 8, 13, 64}) {
      std::vector<Tensor> values;
      for (size_t i = 0; i < sources; ++i) values.push_back(random(GetParam(), count));
      Tensor target = at::empty({count}, GetParam());
      reduce(GetParam(), ReduceOp::kSum, sources_of(values), target.data_ptr(), count);
      EXPECT_TRUE(at::equal(target, expected_sum(values))) << count << " elements, " << sources << " sources";
      reduce(GetParam(), ReduceOp::kSum, sources_of(values), values[0].data_ptr(), count);
      EXPECT_TRUE(at::equal(values[0], target)) << "in place";
    }
  }
}

TEST_P(ReduceBlock, MaxAndMean) {
  at::manual_seed(2);
  std::vector<Tensor> values;
  for (int i = 0; i < 3; ++i) values.push_back(random(GetParam(), 100));
  Tensor target = at::empty({100}, GetParam());
  reduce(GetParam(), ReduceOp::kMax, sources_of(values), target.data_ptr(), 100);
  EXPECT_TRUE(at::equal(target, at::maximum(at::maximum(values[0], values[1]), values[2])));
  if (!can_reduce(GetParam(), ReduceOp::kMean)) return;
  reduce(GetParam(), ReduceOp::kMean, sources_of(values), target.data_ptr(), 100);
  const Tensor mean = expected_sum(values)
                          .to(at::kDouble)
                          .div(3)
                          .to(GetParam() == at::kDouble ? at::kDouble : at::kFloat)
                          .to(GetParam());
  EXPECT_TRUE(at::allclose(target.to(at::kDouble), mean.to(at::kDouble), 1e-6, 0));
}

INSTANTIATE_TEST_SUITE_P(Types, ReduceBlock,
                         testing::Values(at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar, at::kByte,
                                         at::kShort, at::kInt, at::kLong),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

TEST(ReduceBlockEdges, MaxKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Tensor> values = {at::tensor({1.f, nan, 3.f}), at::tensor({2.f, 1.f, nan})};
  Tensor target = at::empty({3});
  reduce(at::kFloat, ReduceOp::kMax, sources_of(values), target.data_ptr(), 3);
  EXPECT_EQ(target[0].item<float>(), 2);
  EXPECT_TRUE(std::isnan(target[1].item<float>()) && std::isnan(target[2].item<float>()));
}

TEST(ReduceBlockEdges, SixteenBitExtremes) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const double big = dtype == at::kHalf ? 65504 : 3.3e38, inf = std::numeric_limits<double>::infinity();
    const auto options = at::TensorOptions(at::kDouble);
    std::vector<Tensor> values = {at::tensor({big, inf, inf, 1.0, -0.0, std::nan("")}, options).to(dtype),
                                  at::tensor({big, 1.0, -inf, 0.00390625, 0.0, 1.0}, options).to(dtype)};
    Tensor target = at::empty({6}, dtype);
    reduce(dtype, ReduceOp::kSum, sources_of(values), target.data_ptr(), 6);
    EXPECT_TRUE(at::equal(target.slice(0, 0, 2), expected_sum(values).slice(0, 0, 2))) << target;
    EXPECT_TRUE(at::isnan(target[2]).item<bool>() && at::isnan(target[5]).item<bool>());
    EXPECT_TRUE(at::equal(target.slice(0, 3, 5), expected_sum(values).slice(0, 3, 5)));
  }
}

// Every 16-bit rounding case: ties, carries, overflow, subnormal numbers.
Tensor awkward_floats() {
  at::manual_seed(5);
  const Tensor bits = at::randint(INT32_MIN, INT32_MAX, {20000}, at::kLong).to(at::kInt);
  const Tensor any = bits.view(at::kFloat);
  const Tensor finite = at::where(at::isfinite(any), any, at::ones({}));
  const Tensor ties = (at::randint(-70000, 70000, {4000}, at::kInt) * 0x1000).view(at::kFloat).nan_to_num();
  return at::cat({finite, at::randn({2000}), ties, at::tensor({65504.f, 65519.f, 65520.f, 1e-8f, -0.f, 3.39e38f})});
}

TEST(RoundToWire, EqualsLibtorchsConversion) {
  const Tensor values = awkward_floats();
  for (const auto wire : {at::kBFloat16, at::kHalf}) {
    Tensor rounded = values.clone();
    round_to_wire(wire, rounded.mutable_data_ptr<float>(), rounded.numel());
    EXPECT_TRUE(at::equal(rounded.view(at::kInt), values.to(wire).to(at::kFloat).view(at::kInt))) << wire;
  }
}

TEST(RoundToWire, EveryNodeOfTheTreeIsRounded) {
  at::manual_seed(6);
  for (const auto wire : {at::kBFloat16, at::kHalf}) {
    for (const size_t sources : {1, 2, 3, 8}) {
      std::vector<Tensor> values, narrow;
      for (size_t i = 0; i < sources; ++i) values.push_back(at::randn({1000}));
      for (const auto& value : values) narrow.push_back(value.to(wire));
      const Tensor expected = expected_sum(narrow).to(at::kFloat), target = at::empty({1000});
      reduce(at::kFloat, ReduceOp::kSum, sources_of(values), target.data_ptr(), 1000, wire);
      EXPECT_TRUE(at::equal(target, expected)) << wire << ' ' << sources;
      reduce(at::kFloat, ReduceOp::kSum, sources_of(values), values[0].data_ptr(), 1000, wire);
      EXPECT_TRUE(at::equal(values[0], expected)) << "in place";
    }
  }
}

// More sources than a node has ranks, some of them values of subtrees; and the memory between is little.
TEST(ReduceBlockEdges, SubtreesGiveTheTreesBits) {
  at::manual_seed(7);
  std::vector<Tensor> values;
  for (int i = 0; i < 300; ++i) values.push_back(at::randn({1000}));
  const Tensor expected = expected_sum(values), target = at::empty({1000});
  reduce(at::kFloat, ReduceOp::kSum, sources_of(values), target.data_ptr(), 1000);
  EXPECT_TRUE(at::equal(target, expected));
  std::vector<Tensor> parts;
  std::vector<Source> sources;
  for (const auto& [first, count] : std::vector<std::pair<int, int>>{{0, 256}, {256, 32}, {288, 8}, {296, 4}}) {
    parts.push_back(expected_sum({values.begin() + first, values.begin() + first + count}));
    sources.push_back({parts.back().data_ptr(), {}, static_cast<size_t>(count)});
  }
  FoldScratch scratch;
  for (const auto op : {ReduceOp::kSum, ReduceOp::kMean}) {
    reduce_block(at::kFloat, op, sources, target.data_ptr(), 1000, scratch);
    EXPECT_TRUE(at::equal(target, op == ReduceOp::kSum ? expected : expected / 300));
  }
}

// Leaves of 16 bits beside others, in trees of any size.
TEST(ReduceBlockEdges, NarrowSourcesAreWidened) {
  at::manual_seed(8);
  FoldScratch scratch;
  for (const size_t count : {1, 2, 3, 5, 8}) {
    for (unsigned narrow = 0; narrow < 1u << count; ++narrow) {
      std::vector<Tensor> values, wide;
      std::vector<Source> sources;
      for (size_t i = 0; i < count; ++i) {
        const auto type = (narrow >> i) % 2 == 0 ? at::kFloat : i % 3 == 0 ? at::kHalf : at::kBFloat16;
        values.push_back(at::randn({100}).to(type));
        wide.push_back(values.back().to(at::kFloat));
        sources.push_back({values.back().data_ptr()});
        if (type != at::kFloat) sources.back().narrow = type;
      }
      const Tensor target = at::empty({100});
      reduce_block(at::kFloat, ReduceOp::kSum, sources, target.data_ptr(), 100, scratch);
      ASSERT_TRUE(at::equal(target, expected_sum(wide))) << count << " sources, narrow " << narrow;
    }
  }
}

TEST(FoldScratch, BlocksInUseAreApartAndComeBack) {
  FoldScratch scratch;
  void* const a = scratch.take();
  void* const b = scratch.take();
  EXPECT_NE(a, b);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
  scratch.release(nullptr);
  scratch.release(a);
  EXPECT_EQ(scratch.take(), a);
}

TEST(ReduceBlockEdges, MinProductAndBitwiseOr) {
  const std::vector<Tensor> values = {at::tensor({5, 2, -3}, at::kShort), at::tensor({3, 4, 300}, at::kShort)};
  const Tensor target = at::empty({3}, at::kShort);
  const auto run = [&](ReduceOp op) {
    reduce(at::kShort, op, sources_of(values), target.data_ptr(), 3);
    return target;
  };
  EXPECT_TRUE(at::equal(run(ReduceOp::kMin), at::minimum(values[0], values[1])));
  EXPECT_TRUE(at::equal(run(ReduceOp::kProduct), values[0] * values[1]));
  EXPECT_TRUE(at::equal(run(ReduceOp::kBitOr), at::bitwise_or(values[0], values[1])));
}

TEST(ReduceBlockEdges, WhatCantBeReducedIsRefused) {
  EXPECT_FALSE(can_reduce(at::kFloat, ReduceOp::kBitOr));
  EXPECT_FALSE(can_reduce(at::kBool, ReduceOp::kProduct));
  EXPECT_TRUE(can_reduce(at::kBool, ReduceOp::kBitOr));
  EXPECT_FALSE(can_reduce(at::kComplexFloat, ReduceOp::kSum));
  EXPECT_FALSE(can_reduce(at::kBool, ReduceOp::kSum));
  EXPECT_TRUE(can_reduce(at::kBool, ReduceOp::kMax));
  EXPECT_THROW(reduce(at::kComplexFloat, ReduceOp::kSum, {}, nullptr, 0), BugError);
  EXPECT_FALSE(can_reduce(at::kInt, ReduceOp::kMean)) << "it would be rounded";
}

}  // namespace
}  // namespace lockstep::comm
