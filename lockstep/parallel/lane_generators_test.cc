#include "lockstep/parallel/lane_generators.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct LaneGeneratorsTest : testing::Test {
  torch::nn::Linear net{2, 2};
  LaneGenerators generators{*net};
};

TEST_F(LaneGeneratorsTest, WhatIsDrawnInLanesIsNotSeenOutside) {
  at::manual_seed(7);
  const Tensor expected = at::rand({3});
  at::manual_seed(7);
  {
    const LaneGenerators::Kept kept(generators);
    generators.seed(1);
    at::rand({5});
  }
  EXPECT_TRUE(at::equal(at::rand({3}), expected));
}

TEST_F(LaneGeneratorsTest, EachLaneGoesOnWhereItWasSuspended) {
  const LaneGenerators::Kept kept(generators);
  generators.seed(1);
  const Tensor first = at::rand({2}), second = at::rand({2});
  generators.begin_turns(2);
  EXPECT_FALSE(generators.enter(0));
  generators.seed(1);
  EXPECT_TRUE(at::equal(at::rand({2}), first));
  generators.leave(0);
  EXPECT_FALSE(generators.enter(1));
  generators.seed(2);
  at::rand({2});
  generators.leave(1);
  EXPECT_TRUE(generators.enter(0));
  EXPECT_TRUE(at::equal(at::rand({2}), second));
}

TEST(DevicesOf, AModulesAreEachNamedOnceAndTheCpusAlways) {
  torch::nn::Linear net{2, 2};
  EXPECT_EQ(devices_of(*net), (std::vector<c10::Device>{c10::kCPU}));
  for (const char* name : {"there", "too"}) net->register_buffer(name, at::zeros({1}, at::kMeta));
  EXPECT_EQ(devices_of(*net), (std::vector<c10::Device>{c10::kCPU, c10::kMeta}));
}

}  // namespace
}  // namespace lockstep::parallel
