#include "lockstep/parallel/graph_walk.h"

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

}  // namespace
}  // namespace lockstep::parallel
