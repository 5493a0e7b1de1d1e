#include "lockstep/checkpoint/compare.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/checkpoint/compare_text.h"

namespace lockstep::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Difference::Kind;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Difference only_difference(const at::Tensor& a, const at::Tensor& b) {
  const auto found = compare(Dict{{"t", a}}, Dict{{"t", b}});
  EXPECT_EQ(found.tensors, 1);
  return found.differences.size() == 1 ? found.differences[0] : Difference{.path = "none, or several"};
}

TEST(Compare, EqualTreesInAnyOrderHaveNoDifference) {
  const at::Tensor tensor = at::arange(6).reshape({2, 3});
  const Value a = Dict{{"x", tensor}, {"y", List{1, "two", Dict{{"nan", kNan}}}}};
  const Value b = Dict{{"y", Tuple{{1, "two", Dict{{"nan", kNan}}}}}, {"x", tensor.t().contiguous().t()}};
  const auto found = compare(a, b);
  EXPECT_TRUE(found.differences.empty());
  EXPECT_EQ(found.tensors, 1);
  EXPECT_EQ(found.values, 3);
}

TEST(Compare, MissingOnesAreNamedOnceWithWhatTheyHold) {
  const Value a = Dict{{"model", Dict{{"w", at::ones({2})}}}, {"list", List{1, 2, 3}}};
  const Value b = Dict{{"optimizer", Dict{{"m", at::ones({2})}, {"lr", 1}}}, {"list", List{1}}, {"model", Dict{}}};
  std::vector<std::string> lines;
  for (const auto& each : compare(a, b).differences) lines.push_back(text_of(each));
  EXPECT_THAT(lines, ElementsAre("model/w  only in A: float32 [2]", "list/1  only in A: 2", "list/2  only in A: 3",
                                 "optimizer  only in B: a dict of 1 tensor and 1 value"));
}

TEST(Compare, TensorsByElementsWithTheLargestDifferencesAndTheirPlaces) {
  at::Tensor a = at::full({2, 3}, 100.0), b = a.clone();
  b[0][1] = 101;
  a[1][2] = 0.001;
  b[1][2] = 0.002;
  const Difference found = only_difference(a.to(at::kFloat), b.to(at::kFloat));
  EXPECT_EQ(found.kind, Kind::kValues);
  EXPECT_EQ(found.elements, 6);
  EXPECT_EQ(found.differing, 2);
  EXPECT_EQ(found.absolute->difference, 1);
  EXPECT_THAT(found.absolute->index, ElementsAre(0, 1));
  EXPECT_EQ(found.absolute->a, 100);
  EXPECT_EQ(found.absolute->b, 101);
  EXPECT_NEAR(found.relative->difference, 0.5, 1e-6);
  EXPECT_THAT(found.relative->index, ElementsAre(1, 2));
  EXPECT_THAT(text_of(found),
              HasSubstr("2 of 6 elements differ, by at most 1 at [0, 1] (100 | 101), relatively 0.5 at [1, 2]"));
}

TEST(Compare, EveryTypeByItsBits) {
  for (const auto dtype :
       {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kChar, at::kByte, at::kShort, at::kInt, at::kLong,
        at::kComplexFloat, at::kComplexDouble, at::kUInt16, at::kUInt32, at::kUInt64, at::kFloat8_e4m3fn,
        at::kFloat8_e5m2, at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz}) {
    SCOPED_TRACE(c10::toString(dtype));
    const Difference found = only_difference(at::tensor({1, 2, 3}).to(dtype), at::tensor({1, 4, 3}).to(dtype));
    EXPECT_EQ(found.differing, 1);
    EXPECT_EQ(found.absolute->difference, 2);
    EXPECT_EQ(found.relative->difference, 0.5);
    EXPECT_THAT(found.absolute->index, ElementsAre(1));
  }
  EXPECT_EQ(only_difference(at::tensor({1, 0}).to(at::kBool), at::tensor({1, 1}).to(at::kBool)).differing, 1);
}

TEST(Compare, NumbersThatFloatsCantTellApart) {
  const int64_t large = std::numeric_limits<int64_t>::max();
  const Difference found = only_difference(at::tensor({large}, at::kLong), at::tensor({large - 1}, at::kLong));
  EXPECT_EQ(found.absolute->difference, 1);
  const Difference ends = only_difference(at::tensor({int64_t{-1}}, at::kLong).view(at::kUInt64),
                                          at::tensor({int64_t{0}}, at::kLong).view(at::kUInt64));
  EXPECT_EQ(ends.absolute->difference, 0x1p64);
}

TEST(Compare, ZerosNansAndInfinities) {
  const Difference zeros = only_difference(at::tensor({0.0}), at::tensor({-0.0}));
  EXPECT_EQ(zeros.differing, 1);
  EXPECT_EQ(zeros.absolute->difference, 0);
  EXPECT_EQ(zeros.relative->difference, 0);
  EXPECT_TRUE(compare(at::tensor({kNan, kInf}), at::tensor({kNan, kInf})).differences.empty());
  const Difference found = only_difference(at::tensor({1.0, kNan, 2.0}), at::tensor({5.0, 1.0, 2.0}));
  EXPECT_EQ(found.differing, 2);
  EXPECT_EQ(found.absolute->difference, kInf);
  EXPECT_THAT(found.absolute->index, ElementsAre(1));
  EXPECT_EQ(only_difference(at::tensor({kInf}), at::tensor({-kInf})).absolute->difference, kInf);
}

TEST(Compare, ShapesAndTypes) {
  EXPECT_EQ(only_difference(at::ones({2, 3}), at::ones({3, 2})).kind, Kind::kShape);
  const Difference wide = only_difference(at::ones({2}), at::ones({2}, at::kBFloat16));
  EXPECT_EQ(wide.kind, Kind::kDtype);
  EXPECT_EQ(wide.differing, 0);
  EXPECT_EQ(text_of(wide), "t  float32 [2] | bfloat16 [2]: 0 of 2 elements differ");
  const Difference rounded = only_difference(at::full({1}, 1.001), at::full({1}, 1.001).to(at::kHalf));
  EXPECT_EQ(rounded.differing, 1);
  EXPECT_GT(rounded.absolute->difference, 0);
  EXPECT_EQ(compare(at::ones({1}), Value(1)).differences[0].kind, Kind::kKind);
  EXPECT_EQ(compare(Value(1), Value(1.0)).differences[0].kind, Kind::kKind);
}

TEST(Compare, EmptyTensorsAndThoseOverManyParts) {
  EXPECT_TRUE(compare(at::empty({0, 2}), at::empty({0, 2})).differences.empty());
  at::Tensor a = at::zeros({1000, 1000}), b = a.clone();
  b[777][333] = 1e-3;
  const Difference found = only_difference(a, b);
  EXPECT_EQ(found.differing, 1);
  EXPECT_THAT(found.absolute->index, ElementsAre(777, 333));
}

TEST(Compare, TheLargestDifferencesComeFirst) {
  const Value a = Dict{{"small", at::tensor({1.0})}, {"lr", 0.1}, {"name", "a"}, {"big", at::tensor({1.0})}};
  const Value b = Dict{{"small", at::tensor({1.1})}, {"lr", 0.3}, {"name", "b"}, {"big", at::tensor({9.0})}};
  std::vector<std::string> paths;
  for (const auto& each : compare(a, b).differences) paths.push_back(each.path);
  EXPECT_THAT(paths, ElementsAre("name", "big", "lr", "small"));
}

TEST(CompareText, IsBoundedAndCounts) {
  Dict a, b;
  for (int i = 0; i < 30; ++i) a.set(i, i), b.set(i, i + 1);
  const auto found = compare(a, b);
  const std::string text = text_of(found, 4);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, testing::EndsWith("\n  and 26 more\n"));
  const auto json = json_of(found, 4);
  EXPECT_EQ(json["differing"], 30);
  EXPECT_EQ(json["differences"].size(), 4u);
  EXPECT_EQ(json["differences"][0].dump(),
            R"({"path":"0","kind":"values","a":"0","b":"1","absolute":{"difference":1.0,"index":[],"a":0.0,"b":1.0}})");
}

}  // namespace
}  // namespace lockstep::checkpoint
