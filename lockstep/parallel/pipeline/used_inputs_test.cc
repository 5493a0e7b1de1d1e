#include "lockstep/parallel/pipeline/used_inputs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

at::Tensor input(bool with_graph = true) { return at::ones({2, 3}).requires_grad_(with_graph); }

TEST(UsedInputs, AreThoseOfAnOutputOrTheLoss) {
  const at::Tensor a = input(), b = input(), c = input();
  UsedInputs used;
  used.begin();
  used.note({a, b, c}, {a * 2, b}, {});
  ASSERT_TRUE(used.unused());
  EXPECT_EQ(used.unused()->input, 2u);
  EXPECT_EQ(used.unused()->sizes, (std::vector<int64_t>{2, 3}));
  used.note({input(), input(), c}, {}, c.sum());
  EXPECT_FALSE(used.unused()) << "in another micro-batch";
  used.begin();
  used.note({a, b, c}, {a}, {});
  EXPECT_FALSE(used.unused()) << "they once were";
}

TEST(UsedInputs, OfWhatHasNoGraphNothingIsAsked) {
  UsedInputs used;
  used.begin();
  used.note({input(), input(/*with_graph=*/false), at::Tensor()}, {}, {});
  EXPECT_EQ(used.unused()->input, 0u);
  used.begin();
  EXPECT_FALSE(used.unused());
  used.note({input(/*with_graph=*/false)}, {at::ones({1}), at::Tensor()}, {});
  EXPECT_FALSE(used.unused());
}

}  // namespace
}  // namespace lockstep::parallel
