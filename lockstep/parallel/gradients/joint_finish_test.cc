#include "lockstep/parallel/gradients/joint_finish.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::ElementsAre;

struct JointFinishTest : testing::Test {
  Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_();
  std::vector<std::string> called;
  std::weak_ptr<const bool> alive;

  void hook(const Tensor& parameter, uint32_t order, const std::string& name) {
    parameter.register_hook([this, order, name](const Tensor&) {
      alive = finish_with_backward(order, [this, name] { called.push_back(name); });
      EXPECT_TRUE(called.empty()) << "not before the end";
      EXPECT_FALSE(alive.expired());
    });
  }
};

TEST_F(JointFinishTest, IsInOneOrderWhateverComesFirst) {
  hook(a, 2, "second");
  hook(b, 1, "first");
  (b * (a * 2)).sum().backward();
  EXPECT_THAT(called, ElementsAre("first", "second"));
  EXPECT_TRUE(alive.expired());
  called.clear();
  (a * (b * 2)).sum().backward();
  EXPECT_THAT(called, ElementsAre("first", "second"));
}

TEST_F(JointFinishTest, ACallWithAnErrorFinishesNothing) {
  hook(b, 1, "first");
  a.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("a user's own"); });
  EXPECT_THROW((b * (a * 2)).sum().backward(), std::runtime_error);
  EXPECT_TRUE(alive.expired());
  b.sum().backward();
  EXPECT_THAT(called, ElementsAre("first"));
}

TEST_F(JointFinishTest, ACallWithinAnotherEndsWithIt) {
  hook(a, 1, "outer");
  hook(b, 2, "inner");
  const Tensor inner = b.sum();
  const Tensor middle = a * 2;
  middle.register_hook([&](const Tensor&) {
    inner.backward();
    EXPECT_TRUE(called.empty());
  });
  middle.sum().backward();
  EXPECT_THAT(called, ElementsAre("outer", "inner"));
}

}  // namespace
}  // namespace lockstep::parallel
