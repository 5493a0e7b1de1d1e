#include "lockstep/amp/cast_rule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::amp {
namespace {

at::Tensor of(at::ScalarType dtype) { return at::ones({2}, dtype); }

// Returns the dtype that `rule` casts the last of these dtypes to, when all of them are seen in one call.
at::ScalarType cast(CastRule rule, std::initializer_list<at::ScalarType> dtypes) {
  Caster caster(rule, at::kCPU);
  for (const at::ScalarType dtype : dtypes) caster.see(of(dtype));
  return caster.cast(of(*(dtypes.end() - 1))).scalar_type();
}

TEST(Caster, EachRuleHasItsDtype) {
  EXPECT_EQ(cast(CastRule::kHalf, {at::kFloat}), at::kBFloat16);
  EXPECT_EQ(cast(CastRule::kFloat, {at::kHalf}), at::kFloat);
  EXPECT_EQ(cast(CastRule::kPromote, {at::kFloat, at::kHalf}), at::kFloat);
  EXPECT_EQ(cast(CastRule::kPromote, {at::kHalf, at::kHalf}), at::kHalf);
  EXPECT_EQ(cast(CastRule::kPromote, {at::kHalf, at::kBFloat16}), at::kFloat);
}

TEST(Caster, LeavesWhatAutocastLeaves) {
  for (const CastRule rule : {CastRule::kHalf, CastRule::kFloat, CastRule::kPromote}) {
    EXPECT_EQ(cast(rule, {at::kDouble}), at::kDouble);
    EXPECT_EQ(cast(rule, {at::kLong}), at::kLong);
    EXPECT_FALSE(Caster(rule, at::kCPU).cast(at::Tensor()).defined());
    EXPECT_EQ(Caster(rule, at::kCUDA).cast(of(at::kHalf)).scalar_type(), at::kHalf);  // of another device
  }
}

TEST(Caster, ReachesIntoLists) {
  const Caster caster(CastRule::kHalf, at::kCPU);
  const auto list = caster.cast(c10::IValue(std::vector<at::Tensor>{of(at::kFloat), of(at::kLong)})).toTensorVector();
  EXPECT_EQ(list.at(0).scalar_type(), at::kBFloat16);
  EXPECT_EQ(list.at(1).scalar_type(), at::kLong);
  c10::List<std::optional<at::Tensor>> some({std::nullopt, of(at::kFloat)});
  const auto cast_some = caster.cast(c10::IValue(some)).toOptionalTensorVector();
  EXPECT_FALSE(cast_some.at(0));
  EXPECT_EQ(cast_some.at(1)->scalar_type(), at::kBFloat16);
  EXPECT_EQ(caster.cast(c10::IValue(7)).toInt(), 7);
}

}  // namespace
}  // namespace lockstep::amp
