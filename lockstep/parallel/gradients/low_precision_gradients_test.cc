#include "lockstep/parallel/gradients/low_precision_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct LowPrecisionGradientsTest : testing::Test {
  Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
  Tensor table = at::ones({2}).requires_grad_(), wide = at::ones({2}, at::kDouble).requires_grad_();
  std::map<size_t, Tensor> offered;
  std::optional<LowPrecisionGradients> gradients;

  LowPrecisionGradientsTest() {
    gradients.emplace(
        std::vector<NamedParameter>{{"a", a}, {"b", b}, {"table", table, /*sparse=*/true}, {"wide", wide}},
        [this](size_t number, const Tensor& gradient) {
          offered[number] = gradient;
          return number == 0;
        });
    gradients->begin_step();
  }
};

TEST_F(LowPrecisionGradientsTest, TakenOnesAreNotAccumulated) {
  const Tensor loss = ((a.to(at::kBFloat16) + b.to(at::kBFloat16)) * 3).sum();
  gradients->hook_casts(loss);
  loss.backward();
  EXPECT_TRUE(at::equal(offered.at(0), at::full({2}, 3, at::kBFloat16)));
  EXPECT_TRUE(at::equal(offered.at(1), at::full({2}, 3, at::kBFloat16)));
  EXPECT_FALSE(a.grad().defined());
  EXPECT_TRUE(at::equal(b.grad(), at::full({2}, 3.0f))) << "offered, but not taken";
  EXPECT_TRUE(gradients->was_taken(0));
  EXPECT_FALSE(gradients->was_taken(0)) << "said once";
  EXPECT_FALSE(gradients->was_taken(1));
}

TEST_F(LowPrecisionGradientsTest, OnlyDenseFp32ParametersAreOffered) {
  const Tensor loss = (table.to(at::kHalf) + wide.to(at::kHalf)).sum() + a.to(at::kDouble).sum();
  gradients->hook_casts(loss);
  loss.backward();
  EXPECT_TRUE(offered.empty());
  EXPECT_TRUE(at::equal(a.grad(), at::ones({2}))) << "its cast is no narrower";
  EXPECT_TRUE(at::equal(wide.grad(), at::ones({2}, at::kDouble)));
}

TEST_F(LowPrecisionGradientsTest, GraphsMayOutliveTheTaker) {
  const Tensor loss = (a.to(at::kHalf) * 3).sum();
  gradients->hook_casts(loss);
  gradients.reset();
  loss.backward();
  EXPECT_TRUE(at::equal(a.grad(), at::full({2}, 3.0f)));
}

}  // namespace
}  // namespace lockstep::parallel
