#include "lockstep/parallel/gradients/lane_sum.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

TEST(LaneSum, AddsInTreeOrder) {
  LaneSum sum;
  std::vector<at::Tensor> lanes;
  for (int i = 0; i < 7; ++i) lanes.push_back(at::randn({100}));
  for (size_t i = 0; i < lanes.size(); ++i) sum.push(i, lanes[i].clone());
  const at::Tensor expected = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + lanes[6]);
  EXPECT_TRUE(at::equal(sum.finish(), expected));
  EXPECT_EQ(sum.lanes(), 0u);
  for (const size_t lane : {2, 0, 1, 6, 4, 5, 3}) sum.push(lane, lanes[lane].clone());
  EXPECT_EQ(sum.lanes(), 7u);
  EXPECT_TRUE(at::equal(sum.finish(), expected)) << "in whatever order they come";
  sum.push(1, lanes[1].clone());
  EXPECT_THROW(sum.push(1, lanes[1].clone()), BugError);
  EXPECT_THROW(sum.finish(), BugError) << "without lane 0";
  sum.clear();
  for (size_t i = 0; i < lanes.size(); ++i) sum.push(i, lanes[i].clone());
  EXPECT_TRUE(at::equal(sum.finish(), expected)) << "what was cleared adds nothing";
}

// As the fold over ranks does, or the bits would depend on how many lanes a rank has.
TEST(LaneSum, RoundsEveryLaneAndEverySumToTheWire) {
  const auto rounded = [](const at::Tensor& value) { return value.to(at::kBFloat16).to(at::kFloat); };
  LaneSum sum(at::kBFloat16);
  std::vector<at::Tensor> lanes;
  for (size_t i = 0; i < 3; ++i) {
    lanes.push_back(at::randn({1000}));
    sum.push(i, lanes[i].clone());
    lanes[i] = rounded(lanes[i]);
  }
  EXPECT_TRUE(at::equal(sum.finish(), rounded(rounded(lanes[0] + lanes[1]) + lanes[2])));
}

}  // namespace
}  // namespace lockstep::parallel
