#include "lockstep/checkpoint/load_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using testing_support::error_of;

TEST(LoadModel, PaddlesLayoutsAreTakenUnderTheNamesWithoutThePrefix) {
  torch::nn::Linear net(2, 2);
  const at::Tensor weight = at::arange(4, at::kFloat).view({2, 2});
  const Dict state{{"model.weight", weight}, {"model.bias", at::ones({2})}};
  const auto loaded = load_model(*net, state, {.file = "f", .strip_prefix = "model.", .paddle = true});
  EXPECT_TRUE(at::equal(net->weight, weight.t())) << "square, so that nothing else would tell";
  EXPECT_EQ(loaded.report.prefix, "model.");
  EXPECT_TRUE(at::equal(*loaded.state.find("weight")->get_if<at::Tensor>(), weight.t()));
}

TEST(LoadModel, APrefixIsDroppedBeforeTheWrappersIs) {
  torch::nn::Linear net(2, 2);
  const Dict state{{"model._orig_mod.weight", at::ones({2, 2})}, {"model._orig_mod.bias", at::ones({2})}};
  const auto loaded = load_model(*net, state, {.file = "f", .strip_prefix = "model."});
  EXPECT_EQ(loaded.report.prefix, "model._orig_mod.");
  EXPECT_TRUE(loaded.state.contains("weight"));
  EXPECT_THAT(error_of<ConfigError>([&] { load_model(*net, state, {.file = "f", .strip_prefix = "net."}); }),
              testing::HasSubstr("no name begins with net."));
}

TEST(LoadModel, TheStateHasTheModulesNames) {
  torch::nn::Linear net(2, 2);
  const Dict model{{"module.weight", at::ones({2, 2})}, {"module.bias", at::ones({2})}};
  const auto loaded = load_model(*net, Dict{{"model", model}}, {.file = "f"});
  EXPECT_EQ(loaded.report.prefix, "module.");
  EXPECT_TRUE(loaded.state.contains("weight") && loaded.state.contains("bias"));
}

TEST(LoadModel, NamesOutsideThePrefixAreLeftOutAndSaid) {
  torch::nn::Linear net(2, 2);
  const Dict state{
      {"model.weight", at::ones({2, 2})}, {"model.bias", at::ones({2})}, {"criterion.weight", at::ones({3})}};
  const auto loaded = load_model(*net, Dict{{"state_dict", state}}, {.file = "f", .strip_prefix = "model."});
  EXPECT_TRUE(at::equal(net->bias, at::ones({2})));
  EXPECT_EQ(loaded.report.text(), "the names without model., 1 other left out");
}

// Masters in fp32 take the state's values, too.
TEST(LoadModel, TheStateHasWhatWasLoadedAlone) {
  torch::nn::Linear net(4, 3);
  const Dict state{{"weight", at::ones({3, 4})}, {"bias", at::ones({1})}, {"other", at::ones({1})}};
  const auto loaded = load_model(*net, state, {.file = "f", .partly = true});
  EXPECT_TRUE(loaded.state.contains("weight"));
  EXPECT_EQ(loaded.state.size(), 1u);
  EXPECT_EQ(loaded.report.text(),
            "1 tensors that fit; 2 do not: bias: the file has [1], the model [3], the model lacks other [1]");
}

TEST(LoadModel, SaysWhichOfSeveralItTook) {
  torch::nn::Linear net(2, 2);
  const auto weights = [](int value) {
    return Dict{{"weight", at::full({2, 2}, value, at::kFloat)}, {"bias", at::full({2}, value, at::kFloat)}};
  };
  const Dict file{{"state_dict", weights(1)}, {"state_dict_ema", weights(2)}};
  EXPECT_EQ(load_model(*net, file, {.file = "f"}).report.text(), "state_dict, not state_dict_ema");
  EXPECT_EQ(net->bias[0].item<float>(), 1);
  EXPECT_EQ(load_model(*net, file, {.file = "f", .average = Average::kWhereThere}).report.text(),
            "state_dict_ema, not state_dict");
  EXPECT_EQ(net->bias[0].item<float>(), 2);
  EXPECT_EQ(load_model(*net, weights(1), {.file = "f", .average = Average::kWhereThere}).report.text(), "");
}

TEST(LoadModel, ObjectsOfUnknownClassesAreLeftOut) {
  torch::nn::Linear net(2, 2);
  const Dict state{{"weight", at::ones({2, 2})}, {"bias", at::ones({2})}, {"_extra_state", Opaque{"a.B"}}};
  load_model(*net, Dict{{"state_dict", state}}, {.file = "f"});
  EXPECT_TRUE(at::equal(net->bias, at::ones({2})));
}

}  // namespace
}  // namespace lockstep::checkpoint
