#include "lockstep/parallel/gradients/unused_parameters.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
  UnusedParameters unused(parameters, false);
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_a), Numbers());
  EXPECT_EQ(unused.walks(), 0u);
  unused.finish(comm);
  EXPECT_FALSE(unused.unused(1));
}

TEST_F(UnusedParametersTest, EveryStepIsSearched) {
  UnusedParameters unused(parameters, true);
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_a), (Numbers{2, 1})) << "the last one first";
  EXPECT_EQ(unused.unused_in(of_b), (Numbers{2, 0}));
  unused.finish(comm);
  EXPECT_FALSE(unused.unused(0));
  EXPECT_FALSE(unused.unused(1));
  EXPECT_TRUE(unused.unused(2));
  unused.begin_step();
  EXPECT_EQ(unused.unused_in(of_all), Numbers());
  EXPECT_EQ(unused.walks(), 3u);
  unused.finish(comm);
  EXPECT_FALSE(unused.unused(2)) << "as the last step found";
}

}  // namespace
}  // namespace lockstep::parallel
