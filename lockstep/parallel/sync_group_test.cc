#include "lockstep/parallel/sync_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct SyncGroupTest : testing::Test {
  SyncGroupTest() { at::manual_seed(3); }
};

nn::Moments moments_of(const Tensor& x) {  // [n, C]
  const Tensor values = x.to(at::kDouble), mean = values.mean(0);
  return {.count = at::full({1}, static_cast<double>(x.size(0)), at::kDouble),
          .mean = mean,
          .m2 = (values - mean).square().sum(0)};
}

Tensor row_of(const nn::Moments& m) { return at::cat({m.count, m.mean, m.m2}); }

void expect_near(const nn::Moments& got, const nn::Moments& want) {
  EXPECT_TRUE(at::equal(got.count, want.count));
  EXPECT_TRUE(at::allclose(got.mean, want.mean, 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(got.m2, want.m2, 1e-12, 1e-12));
}

TEST_F(SyncGroupTest, MomentsOfPartsAreThoseOfTheWhole) {
  const Tensor x = at::randn({10, 3}, at::kDouble) * 2 + 100;
  for (const auto combine : {combine_moments, combine_moments_at_once}) {
    std::vector<Tensor> rows;
    for (const auto& part : x.split_with_sizes({3, 1, 4, 2})) rows.push_back(row_of(moments_of(part)));
    expect_near(combine(at::stack(rows)), moments_of(x));
    for (const int empty : {1, 0}) {  // empty lanes
      rows.insert(rows.begin() + empty, at::zeros({7}, at::kDouble));
      expect_near(combine(at::stack(rows)), moments_of(x));
    }
    EXPECT_TRUE(at::equal(combine(at::zeros({2, 7}, at::kDouble)).count, at::zeros({1}, at::kDouble)));
  }
}

TEST_F(SyncGroupTest, LanesOfARankJoinByTurns) {
  SyncGroup group(std::make_unique<comm::SingleCommunicator>());
  const Tensor x = at::randn({6, 2}, at::kDouble);
  std::vector<bool> keeps;
  group.run(
      4, {0, 2, 3}, at::kCPU,  // lane 1 is empty
      [&](size_t lane) {
        const Tensor own = x.narrow(0, lane == 0 ? 0 : lane == 2 ? 2 : 5, lane == 3 ? 1 : lane == 0 ? 2 : 3);
        expect_near(group.join(moments_of(own)), moments_of(x));
        EXPECT_TRUE(at::equal(group.add(at::full({2, 2}, static_cast<double>(lane), at::kDouble)),
                              at::full({2, 2}, 5.0, at::kDouble)));
        keeps.push_back(group.keeps_statistics());
      },
      [](size_t, size_t) {});
  EXPECT_EQ(keeps, (std::vector<bool>{true, false, false}));
  expect_near(group.join(moments_of(x)), moments_of(x));  // outside of steps a rank is one lane
}

}  // namespace
}  // namespace lockstep::parallel
