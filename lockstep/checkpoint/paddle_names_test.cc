#include "lockstep/checkpoint/paddle_names.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <nlohmann/json.hpp>

#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/state_dict.h"

namespace lockstep::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct NetImpl : torch::nn::Module {
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(3, 4));
  torch::nn::Linear square = register_module("square", torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false)));
  torch::nn::BatchNorm1d bn = register_module("bn", torch::nn::BatchNorm1d(4));
  torch::nn::Embedding words = register_module("words", torch::nn::Embedding(5, 2));
};

std::vector<std::string> names(const Dict& dict) {
  std::vector<std::string> all;
  for (const auto& [key, value] : dict) all.push_back(key_text(key));
  return all;
}

// As Paddle has the same network.
Dict paddles() {
  return {{"fc.weight", at::arange(12, at::kFloat).view({3, 4})},
          {"fc.bias", at::ones({4})},
          {"square.weight", at::arange(4, at::kFloat).view({2, 2})},
          {"bn.weight", at::full({4}, 2.0)},
          {"bn.bias", at::full({4}, 3.0)},
          {"bn._mean", at::full({4}, 4.0)},
          {"bn._variance", at::full({4}, 5.0)},
          {"words.weight", at::arange(10, at::kFloat).view({5, 2})},
          {std::string(kPaddleNames), Dict{{"fc.weight", "linear_0.w_0"}}}};
}

TEST(PaddleNames, LinearWeightsAreThoseOfLinearLayers) {
  EXPECT_THAT(linear_weights(NetImpl()), ElementsAre("fc.weight", "square.weight"));
  EXPECT_THAT(likely_linear_weights(paddles()), ElementsAre("fc.weight"));
  EXPECT_THAT(likely_linear_weights(state_dict(NetImpl())), ElementsAre("fc.weight"));
}

TEST(PaddleNames, AFileOfPaddlesLoadsIntoAModule) {
  NetImpl net;
  load_state_dict(net, from_paddle(paddles(), net, "a.pdparams"), {.file = "a.pdparams"});
  EXPECT_TRUE(at::equal(net.fc->weight, at::arange(12, at::kFloat).view({3, 4}).t()));
  EXPECT_TRUE(at::equal(net.square->weight, at::arange(4, at::kFloat).view({2, 2}).t()));
  EXPECT_TRUE(at::equal(net.words->weight, at::arange(10, at::kFloat).view({5, 2})));
  EXPECT_TRUE(at::equal(net.bn->running_mean, at::full({4}, 4.0)));
  EXPECT_TRUE(at::equal(net.bn->running_var, at::full({4}, 5.0)));
  EXPECT_EQ(net.bn->num_batches_tracked.item<int64_t>(), 0);
}

// tests/fixtures/record_paddle.py recorded the file, and what Paddle computes with it.
TEST(PaddleNames, WhatPaddleTrainedComputesTheSame) {
  const std::string folder = testing_support::fixtures() + "/paddle";
  const auto computed = nlohmann::json::parse(testing_support::read_file(folder + "/computed.json"));
  const auto tensor = [&](const char* name, int64_t columns) {
    std::vector<float> numbers;
    for (const auto& row : computed[name]) numbers.insert(numbers.end(), row.begin(), row.end());
    return at::tensor(numbers).view({-1, columns});
  };
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4));
  const std::string file = folder + "/model.pdparams";
  const Dict state = find_model_state(open_checkpoint(file), file);
  load_state_dict(*net, from_paddle(state, *net, file), {.file = file});
  net->eval();
  EXPECT_TRUE(at::allclose(net->forward(tensor("input", 3)), tensor("output", 4), 1e-5, 1e-6));
}

TEST(PaddleNames, AModuleGivesPaddlesNamesAndBack) {
  const NetImpl net;
  const auto linear = linear_weights(net);
  const Dict there = to_paddle(state_dict(net), linear, "a");
  EXPECT_THAT(names(there), ElementsAre("fc.weight", "fc.bias", "square.weight", "bn.weight", "bn.bias", "bn._mean",
                                        "bn._variance", "words.weight"));
  EXPECT_EQ(there.find("fc.weight")->get_if<at::Tensor>()->sizes(), at::IntArrayRef({3, 4}));
  EXPECT_EQ(weights_sha256([&] {
              NetImpl other;
              load_state_dict(other, from_paddle(there, other, "a"));
              return named_state(other);
            }()),
            weights_sha256(net));
}

TEST(PaddleNames, ALinearWeightHasTwoDimensions) {
  EXPECT_THAT(testing_support::error_of<DataError>([] {
                from_paddle(Dict{{"fc.weight", at::ones({3})}}, std::set<std::string>{"fc.weight"}, "a.pdparams");
              }),
              HasSubstr("a.pdparams: fc.weight: the weight of a Linear layer is a tensor of 1 dimensions"));
}

}  // namespace
}  // namespace lockstep::checkpoint
