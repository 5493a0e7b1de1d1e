#include "lockstep/train/evaluation.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/comm/single_communicator.h"
#include "lockstep/train/testing/byte_images.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using testing_support::Blobs;
using testing_support::TinyRecipe;

TEST(Evaluation, CountsEverySampleOnce) {
  const TinyRecipe recipe;
  const Blobs data(50);
  const Model model = recipe.make_model(1, data);
  comm::SingleCommunicator comm;
  const auto whole = evaluate(recipe, model, data, comm, {.chunk = 50});
  const auto parts = evaluate(recipe, model, data, comm, {.chunk = 7});  // the last chunk is a short one
  EXPECT_EQ(whole.samples, 50);
  EXPECT_EQ(parts.metrics, whole.metrics);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-6);
}

TEST(Evaluation, NormalisesBytes) {
  const TinyRecipe recipe;
  const testing_support::ByteImages bytes(20, true), numbers(20, false);
  torch::nn::Linear net(torch::nn::LinearOptions(3 * 8 * 8, 3));
  const Model model{.module = net.ptr(),
                    .forward = [&](const data::Batch& batch) { return net->forward(batch.data().flatten(1)); }};
  comm::SingleCommunicator comm;
  const auto of_numbers = evaluate(recipe, model, numbers, comm, {.chunk = 7});
  const auto of_bytes = evaluate(recipe, model, bytes, comm, {.chunk = 7});
  EXPECT_EQ(of_bytes.loss, of_numbers.loss);
  EXPECT_EQ(of_bytes.metrics, of_numbers.metrics);
  EXPECT_EQ(evaluate_sample(recipe, model, bytes, {}).loss, evaluate_sample(recipe, model, numbers, {}).loss);
}

TEST(Evaluation, IsShownInFourDigits) {
  EXPECT_EQ(text_of(nlohmann::ordered_json(1.0 / 6)), "0.1667");
  EXPECT_EQ(text_of(nlohmann::ordered_json(12345.678)), "12345.6780");
  EXPECT_EQ(text_of(nlohmann::ordered_json(0.0)), "0.0000");
  EXPECT_EQ(text_of(nlohmann::ordered_json(0.000123456)), "0.0001235");
  EXPECT_EQ(text_of(nlohmann::ordered_json(1.5e9)), "1.5e+09");
  EXPECT_EQ(text_of(nlohmann::ordered_json(17)), "17");
  EXPECT_EQ(text_of(nlohmann::ordered_json({0.86471223, 1.0 / 3})), "[0.8647, 0.3333]");
  const Evaluation found{.loss = 0.5, .samples = 6, .left_out = 1, .metrics = {{"top1", 1.0 / 6}, {"correct", 1}}};
  EXPECT_EQ(text_of(found, "test"), "loss 0.5, top1 0.1667, correct 1 on 6 test samples (1 more can't be read)");
}

TEST(Evaluation, LeavesTheModuleAsItWas) {
  const TinyRecipe recipe;
  const Blobs data(10);
  const Model model = recipe.make_model(1, data);
  comm::SingleCommunicator comm;
  for (const bool training : {true, false}) {
    model.module->train(training);
    evaluate(recipe, model, data, comm, {});
    EXPECT_EQ(model.module->is_training(), training);
  }
  torch::nn::Sequential net(torch::nn::BatchNorm1d(2), torch::nn::Linear(2, 3));
  net->train();
  net[0]->eval();  // frozen
  evaluate(recipe, {.module = net.ptr(), .forward = [&](const auto& batch) { return net->forward(batch.data()); }},
           data, comm, {});
  EXPECT_TRUE(net->is_training() && net[1]->is_training());
  EXPECT_FALSE(net[0]->is_training());
}

}  // namespace
}  // namespace lockstep::train
