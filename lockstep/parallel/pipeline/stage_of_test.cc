#include "lockstep/parallel/pipeline/stage_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::parallel {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

TEST(StageOf, TakesTheLayersWithTheirNamesInTheWhole) {
  torch::nn::Sequential net;
  for (int layer = 0; layer < 10; ++layer) net->push_back(torch::nn::Linear(4, 4));
  EXPECT_THAT(refusal([&] { stage_of(net, 11, 0); }), HasSubstr("11 stages of 10 layers"));
  EXPECT_THAT(refusal([&] {
                stage_of(net, 2, 0, {0, 10});
              }),
              HasSubstr("stage 1 of 2 gets no layer: it would begin with layer 10"));
  EXPECT_THAT(refusal([&] { stage_of(net, 3, 0, {0, 2, 2}); }), HasSubstr("stage 1 of 3 gets no layer"));
  EXPECT_THAT(refusal([&] { stage_of(net, 2, 0, {1, 2}); }), HasSubstr("rising from 0"));
  EXPECT_THAT(refusal([&] { stage_of(net, 2, 2); }), HasSubstr("stage 2 of 2"));
  EXPECT_EQ(stage_of(net, 2, 1, {0, 7})->named_parameters().keys().front(), "7.weight");
}

}  // namespace
}  // namespace lockstep::parallel
