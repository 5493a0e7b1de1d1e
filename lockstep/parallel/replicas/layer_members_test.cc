#include "lockstep/parallel/replicas/layer_members.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace lockstep::parallel {
namespace {

TEST(LayerMembers, ThatAreGivenOtherTensorsAreNamed) {
  torch::nn::Embedding embedding(10, 4);
  torch::nn::Linear head(4, 10), plain(torch::nn::LinearOptions(4, 4).bias(false));
  torch::nn::Sequential net(embedding, torch::nn::Conv2d(1, 2, 3), plain, torch::nn::LayerNorm(std::vector<int64_t>{4}),
                            head);
  EXPECT_EQ(unregistered_member(*net), "");
  head->weight = embedding->weight;
  EXPECT_EQ(unregistered_member(*net), "4.weight");
  EXPECT_EQ(unregistered_member(*head), "weight");
  embedding->weight = head->named_parameters()["weight"];
  EXPECT_EQ(unregistered_member(*net), "0.weight");
}

}  // namespace
}  // namespace lockstep::parallel
