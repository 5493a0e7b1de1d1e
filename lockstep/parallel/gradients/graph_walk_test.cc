#include "lockstep/parallel/gradients/graph_walk.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

TEST(GraphWalk, FindsWhatALossDependsOn) {
  const at::Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_(),
                   c = at::ones({2}).requires_grad_();
  const at::Tensor once = (a * 2).sum(), twice = (a + c * a).sum();
  using Reached = std::vector<bool>;
  EXPECT_EQ(reached_parameters({once}, {a, b, c}), (Reached{true, false, false}));
  EXPECT_EQ(reached_parameters({twice}, {a, b, c}), (Reached{true, false, true}));
  EXPECT_EQ(reached_parameters({once, (b * 1).sum()}, {a, b, c}), (Reached{true, true, false}));
  EXPECT_EQ(reached_parameters({b}, {a, b, c}), (Reached{false, true, false})) << "a parameter itself";
  EXPECT_EQ(reached_parameters({(a.detach() * 2).sum()}, {a}), (Reached{false}));
}

TEST(GraphWalk, FindsCastsThatAllElseGoesThrough) {
  const at::Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_(),
                   c = at::ones({2}).requires_grad_(), d = at::ones({2}).requires_grad_();
  const at::Tensor narrow = a.to(at::kBFloat16), other = c.to(at::kHalf);
  d.register_hook([](const at::Tensor&) {});
  const at::Tensor loss =
      (narrow * narrow).sum() + b.to(at::kHalf).sum() + (b * 2).sum() + other.sum() + d.to(at::kHalf).sum();
  const auto casts = lone_casts(loss, {a, b, c, d, at::ones({2}).requires_grad_()});
  EXPECT_EQ(casts[0], narrow.grad_fn());
  EXPECT_EQ(casts[1], nullptr) << "used as it is, too";
  EXPECT_EQ(casts[2], other.grad_fn());
  EXPECT_EQ(casts[3], nullptr) << "hooked";
  EXPECT_EQ(casts[4], nullptr) << "not used";
  EXPECT_EQ(lone_casts((a * 2).sum(), {a})[0], nullptr) << "not cast";
}

}  // namespace
}  // namespace lockstep::parallel
