#include "lockstep/parallel/gradients/unused_parameters.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using Numbers = std::vector<size_t>;

struct UnusedParametersTest : testing::Test {
  comm::SingleCommunicator comm;
  Tensor a = at::ones({2}).requires_grad_(), b = at::ones({2}).requires_grad_(), c = at::ones({2}).requires_grad_();
  std::vector<NamedParameter> parameters = {{"a", a}, {"b", b}, {"c", c}};
  Tensor of_a = (a * 2).sum(), of_b = b.sum(), of_all = (a + b + c).sum();
};

TEST_F(UnusedParametersTest, NothingIsSearchedUnlessAsked) {
  UnusedParameters unused(parameters, {});
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_a, 0), Numbers());
  unused.finish(comm);
  EXPECT_FALSE(unused.unused(1));
}

TEST_F(UnusedParametersTest, EveryStepIsSearched) {
  UnusedParameters unused(parameters, {.find_unused_parameters = true});
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_a, 0), (Numbers{2, 1})) << "the last one first";
  EXPECT_EQ(unused.unused_in(of_b, 1), (Numbers{2, 0}));
  unused.finish(comm);
  EXPECT_FALSE(unused.unused(0));
  EXPECT_FALSE(unused.unused(1));
  EXPECT_TRUE(unused.unused(2));
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_all, 0), Numbers());
  unused.finish(comm);
  EXPECT_FALSE(unused.unused(2)) << "as the last step found";
}

TEST_F(UnusedParametersTest, AStaticGraphIsSearchedInItsFirstStep) {
  UnusedParameters unused(parameters, {.static_graph = true});
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_a, 0), (Numbers{2, 1}));
  EXPECT_EQ(unused.unused_in(of_b, 1), (Numbers{2, 0}));
  EXPECT_NO_THROW(unused.check_gradient(2, 0)) << "nothing is known yet";
  unused.finish(comm);
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_all, 0), (Numbers{2, 1})) << "as in the first step";
  EXPECT_NO_THROW(unused.check_gradient(0, 0));
  EXPECT_THROW(unused.check_gradient(1, 0), ConfigError) << "lane 0 did not use it";
  EXPECT_NO_THROW(unused.check_gradient(1, 1));
  EXPECT_NO_THROW(unused.check_gradient(0, 2)) << "a lane that was empty may use what some lane did";
  EXPECT_THROW(unused.check_gradient(2, 2), ConfigError);
  unused.finish(comm);
  EXPECT_TRUE(unused.unused(2));
}

}  // namespace
}  // namespace lockstep::parallel
