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

TEST(LoadModel, ObjectsOfUnknownClassesAreLeftOut) {
  torch::nn::Linear net(2, 2);
  const Dict state{{"weight", at::ones({2, 2})}, {"bias", at::ones({2})}, {"_extra_state", Opaque{"a.B"}}};
  load_model(*net, Dict{{"state_dict", state}}, {.file = "f"});
  EXPECT_TRUE(at::equal(net->bias, at::ones({2})));
}

}  // namespace
}  // namespace lockstep::checkpoint
