#include "lockstep/parallel/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;

// tests/parity/sync_batch_norm_test.cc has what it is for, on several ranks.
TEST(ConvertSyncBatchnorm, LayersStayTheObjectsTheyAre) {
  comm::SingleCommunicator comm;
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::BatchNorm3d(4));
  EXPECT_EQ(find_sync_group(*net), nullptr);
  const auto before = net->named_parameters().keys();
  convert_sync_batchnorm(*net, comm);
  EXPECT_EQ(net->named_parameters().keys(), before);
  EXPECT_NE(find_sync_group(*net), nullptr);
}

TEST(ConvertSyncBatchnorm, AnotherLayerIsAsItWas) {
  comm::SingleCommunicator comm;
  const Tensor x = at::randn({6, 4, 5, 5});
  torch::nn::BatchNorm2d converted(4), plain(4);
  convert_sync_batchnorm(*converted, comm);
  EXPECT_EQ(find_sync_group(*plain), nullptr);
  const Tensor want = at::batch_norm(x, plain->weight, plain->bias, {}, {}, true, 0.1, 1e-5, false);
  EXPECT_TRUE(at::equal(plain->forward(x), want));
  EXPECT_TRUE(at::allclose(converted->forward(x), want, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(converted->running_mean, plain->running_mean, 1e-5, 1e-6));
}

TEST(ConvertSyncBatchnorm, MemoryFormatIsKept) {
  comm::SingleCommunicator comm;
  torch::nn::BatchNorm2d norm(4);
  convert_sync_batchnorm(*norm, comm);
  const Tensor x = at::randn({2, 4, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(norm->forward(x).is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(norm->forward(x.contiguous()).is_contiguous());
}

TEST(ConvertSyncBatchnorm, RefusesWhatCannotBe) {
  comm::SingleCommunicator comm;
  torch::nn::Linear none(3, 4);
  EXPECT_THROW(convert_sync_batchnorm(*none, comm), ConfigError);
  torch::nn::BatchNorm2d bare(torch::nn::BatchNorm2dOptions(4).affine(false).track_running_stats(false));
  EXPECT_THROW(convert_sync_batchnorm(*bare, comm), ConfigError);
}

}  // namespace
}  // namespace lockstep::parallel
