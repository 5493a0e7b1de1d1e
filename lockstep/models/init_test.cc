#include "lockstep/models/init.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::models {
namespace {

double deviation(const at::Tensor& x) { return x.std().item().toDouble(); }

TEST(Fans, CountTheKernel) {
  const Fans fans = fans_of(at::empty({20, 3, 5, 5}));
  EXPECT_EQ(fans.in, 75);
  EXPECT_EQ(fans.out, 500);
  EXPECT_EQ(fans_of(at::empty({10, 980})).in, 980);
  EXPECT_THROW(fans_of(at::empty({20})), BugError);
}

TEST(Init, KaimingNormalHasItsDeviation) {
  const at::Tensor weight = at::empty({100, 20, 5, 5});
  kaiming_normal_(weight, init_stream(1, 0));
  EXPECT_NEAR(deviation(weight), std::sqrt(2.0 / 500), 0.001);
  EXPECT_NEAR(weight.mean().item().toDouble(), 0, 0.001);
}

TEST(Init, KaimingNormalTakesEitherFan) {
  const at::Tensor weight = at::empty({100, 20, 5, 5});
  kaiming_normal_(weight, init_stream(1, 0), Fan::kOut);
  EXPECT_NEAR(deviation(weight), std::sqrt(2.0 / 2500), 0.001);
  normal_(weight, 0.01, init_stream(1, 0));
  EXPECT_NEAR(deviation(weight), 0.01, 0.0001);
  EXPECT_DOUBLE_EQ(default_bound(weight), 1 / std::sqrt(500.0));
}

TEST(Init, XavierUniformFillsItsRange) {
  const at::Tensor weight = at::empty({100, 500});
  xavier_uniform_(weight, init_stream(1, 0));
  const double limit = std::sqrt(6.0 / 600);
  EXPECT_LE(weight.abs().max().item().toDouble(), limit);
  EXPECT_NEAR(weight.max().item().toDouble(), limit, limit / 1000);
  EXPECT_NEAR(weight.min().item().toDouble(), -limit, limit / 1000);
  EXPECT_NEAR(deviation(weight), limit / std::sqrt(3.0), limit / 100);
}

TEST(Init, IsAPureFunctionOfSeedAndParameter) {
  const auto draw = [](uint64_t seed, uint64_t parameter) {
    const at::Tensor weight = at::empty({8, 3, 3, 3});
    kaiming_normal_(weight, init_stream(seed, parameter));
    return weight;
  };
  EXPECT_TRUE(at::equal(draw(1, 0), draw(1, 0)));
  EXPECT_FALSE(at::equal(draw(1, 0), draw(2, 0)));
  EXPECT_FALSE(at::equal(draw(1, 0), draw(1, 1)));
}

TEST(Init, DoesNotFollowStrides) {
  const at::Tensor plain = at::empty({8, 3, 3, 3}).requires_grad_();
  const at::Tensor last = at::empty({8, 3, 3, 3}, at::MemoryFormat::ChannelsLast).to(at::kDouble);
  kaiming_normal_(plain, init_stream(1, 0));
  kaiming_normal_(last, init_stream(1, 0));
  EXPECT_TRUE(at::equal(plain.to(at::kDouble), last));
}

}  // namespace
}  // namespace lockstep::models
