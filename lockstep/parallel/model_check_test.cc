#include "lockstep/parallel/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

TEST(ModelCheck, DescribesParametersBuffersAndOptions) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
  net->parameters()[0].requires_grad_(false);
  EXPECT_THAT(describe_model(*net, {"seed 1"}),
              testing::ElementsAre("parameter 0.weight [3, 2] float, no gradient", "parameter 0.bias [3] float",
                                   "parameter 1.weight [3] float", "parameter 1.bias [3] float",
                                   "buffer 1.running_mean [3] float, no gradient",
                                   "buffer 1.running_var [3] float, no gradient",
                                   "buffer 1.num_batches_tracked [] long int, no gradient", "option seed 1"));
}

TEST(ModelCheck, NamesTheFirstDifference) {
  EXPECT_EQ(first_difference({{"a", "b"}, {"a", "b"}}), "");
  EXPECT_EQ(first_difference({{"a", "b"}, {"a", "b"}, {"a", "c"}}), "rank 2 has c where rank 0 has b");
  EXPECT_EQ(first_difference({{"a", "b"}, {"a"}}), "rank 1 has nothing more where rank 0 has b");
}

TEST(ModelCheck, AWorldOfOneAgrees) {
  comm::SingleCommunicator comm;
  check_same_model(*torch::nn::Linear(2, 3), {}, comm);
}

}  // namespace
}  // namespace lockstep::parallel
