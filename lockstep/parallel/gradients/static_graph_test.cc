#include "lockstep/parallel/gradients/static_graph.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

struct StaticGraphTest : testing::Test {
  comm::SingleCommunicator comm;
  StaticGraph graph{{{"once", at::ones({2})}, {"twice", at::ones({2})}, {"never", at::ones({2})}}};
  Tensor one = at::ones({2});

  // A first step of one lane.
  void count() {
    graph.begin_step();
    EXPECT_FALSE(graph.add(0, 0, one).defined()) << "nobody knows yet whether more will come";
    EXPECT_FALSE(graph.add(1, 0, one).defined());
    EXPECT_FALSE(graph.add(1, 0, one * 2).defined());
    EXPECT_TRUE(at::equal(graph.rest(0, 0), one));
    EXPECT_TRUE(at::equal(graph.rest(1, 0), one * 3));
    EXPECT_FALSE(graph.rest(2, 0).defined());
    graph.finish(comm);
  }
};

TEST_F(StaticGraphTest, TheLastGradientOfAParameterGoesOn) {
  EXPECT_FALSE(graph.expects(2, 0, 0)) << "nothing is known";
  count();
  EXPECT_TRUE(graph.expects(0, 0, 1) && graph.expects(1, 0, 2) && graph.expects(2, 0, 0));
  graph.begin_step();
  EXPECT_TRUE(at::equal(graph.add(0, 0, one), one));
  EXPECT_FALSE(graph.add(1, 0, one).defined());
  EXPECT_TRUE(at::equal(graph.add(1, 0, one * 2), one * 3));
  EXPECT_FALSE(graph.rest(1, 0).defined());
}

TEST_F(StaticGraphTest, OneMoreIsRefused) {
  count();
  graph.begin_step();
  graph.add(0, 0, one);
  EXPECT_THAT(refusal([&] { graph.add(0, 0, one); }), HasSubstr("once got 2 gradients where the first step had 1"));
  EXPECT_THAT(refusal([&] { graph.add(2, 0, one); }), HasSubstr("never got a gradient where the first step had none"));
}

TEST_F(StaticGraphTest, OneLessIsRefused) {
  count();
  graph.begin_step();
  graph.add(1, 0, one);
  graph.add(1, 0, one);
  EXPECT_THAT(refusal([&] { graph.finish(comm); }), HasSubstr("once got no gradient where the first step had 1"));
  graph.begin_step();
  graph.add(0, 0, one);
  graph.add(1, 0, one);
  EXPECT_THAT(refusal([&] { graph.finish(comm); }), HasSubstr("twice got 1 gradient where the first step had 2"));
  graph.use(1);  // the other is kept from before
  graph.finish(comm);
}

TEST_F(StaticGraphTest, AStepWithoutSamplesMayLackAll) {
  count();
  graph.begin_step();
  graph.finish(comm);
}

TEST_F(StaticGraphTest, ALaneThatWasEmptyIsAsTheOthers) {
  count();
  graph.begin_step();
  EXPECT_FALSE(graph.add(1, 1, one).defined());
  EXPECT_TRUE(at::equal(graph.add(1, 1, one), one * 2));
}

TEST_F(StaticGraphTest, WhatHadNoGradientHasNone) {
  count();
  EXPECT_FALSE(graph.unused(0));
  EXPECT_TRUE(graph.unused(2));
  for (const bool kept : {true, false}) {
    graph.begin_step();
    if (kept) graph.use(2);
    graph.finish(comm);
    EXPECT_EQ(graph.unused(2), !kept) << "one from before is kept in one step";
  }
}

}  // namespace
}  // namespace lockstep::parallel
