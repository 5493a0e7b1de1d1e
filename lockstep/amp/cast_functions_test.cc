#include "lockstep/amp/cast_functions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>

#include "lockstep/amp/autocast.h"

namespace lockstep::amp {
namespace {

const Policy kO1 = {.level = OptLevel::kO1};

at::ScalarType dtype_of(const at::Tensor& t) { return t.scalar_type(); }
at::ScalarType product_dtype() { return at::mm(at::ones({2, 2}), at::ones({2, 2})).scalar_type(); }

TEST(CastFunctions, CastOnlyWhileAutocastIsOn) {
  const auto half = half_function(dtype_of), full = float_function(dtype_of);
  const at::Tensor wide = at::ones({2}), narrow = at::ones({2}, at::kBFloat16);
  EXPECT_EQ(half(wide), at::kFloat);
  EXPECT_EQ(full(narrow), at::kBFloat16);
  const AutocastScope scope(kO1);
  EXPECT_EQ(half(wide), at::kBFloat16);
  EXPECT_EQ(full(narrow), at::kFloat);
}

TEST(CastFunctions, PromoteLooksAtAllArguments) {
  const auto both = promote_function([](const at::Tensor& a, const std::vector<at::Tensor>& more) {
    return std::pair(a.scalar_type(), more.at(0).scalar_type());
  });
  const AutocastScope scope(kO1);
  const at::Tensor wide = at::ones({2}), narrow = at::ones({2}, at::kBFloat16);
  EXPECT_EQ(both(narrow, std::vector<at::Tensor>{wide}), std::pair(at::kFloat, at::kFloat));
  EXPECT_EQ(both(narrow, std::vector<at::Tensor>{narrow}), std::pair(at::kBFloat16, at::kBFloat16));
}

TEST(CastFunctions, OtherArgumentsPassThrough) {
  int counter = 0;
  const auto function = half_function([](std::optional<at::Tensor> maybe, const std::optional<at::Tensor>& none,
                                         int& count, std::unique_ptr<int> owned) -> int& {
    EXPECT_EQ(maybe->scalar_type(), at::kBFloat16);
    EXPECT_FALSE(none);
    count += *owned;
    return count;
  });
  const AutocastScope scope(kO1);
  int& result = function(std::optional(at::ones({2})), std::optional<at::Tensor>(), counter, std::make_unique<int>(3));
  EXPECT_EQ(&result, &counter);
  EXPECT_EQ(counter, 3);
}

TEST(CastFunctions, GradientsOfWeightsAreFp32) {
  const at::Tensor weight = at::ones({2}).requires_grad_();
  at::Tensor loss;
  {
    const AutocastScope scope(kO1);
    loss = half_function([](const at::Tensor& w) { return (w * 3).sum(); })(weight);
    EXPECT_EQ(loss.scalar_type(), at::kBFloat16);
  }
  loss.backward();
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(weight.grad()[0].item<float>(), 3);
}

TEST(DisableCasts, NestsInAutocastAndAroundIt) {
  const AutocastScope scope(kO1);
  EXPECT_EQ(product_dtype(), at::kBFloat16);
  {
    const DisableCasts off;
    EXPECT_EQ(product_dtype(), at::kFloat);
    EXPECT_EQ(half_function(dtype_of)(at::ones({2})), at::kFloat);
    {
      const AutocastScope on(kO1);
      EXPECT_EQ(product_dtype(), at::kBFloat16);
      const DisableCasts off_again;
      EXPECT_EQ(product_dtype(), at::kFloat);
    }
    EXPECT_EQ(product_dtype(), at::kFloat);
  }
  EXPECT_EQ(product_dtype(), at::kBFloat16);
}

}  // namespace
}  // namespace lockstep::amp
