#include "lockstep/checkpoint/state_dict.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/found_state.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::HasSubstr;

struct Net : torch::nn::Module {
  Net() {
    scale = register_parameter("scale", torch::ones({1}));
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 5).bias(false)));
    bn = register_module("bn", torch::nn::BatchNorm2d(4));
    offset = register_buffer("offset", torch::zeros({2}));
  }
  at::Tensor scale, offset;
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
};

Dict renamed(const Dict& state, const std::function<std::string(const std::string&)>& rename) {
  Dict result;
  for (const auto& [key, value] : state) result.set(rename(key_text(key)), value);
  return result;
}

Dict copied(const Dict& state) {
  Dict result;
  for (const auto& [key, value] : state) result.set(key, value.get_if<at::Tensor>()->clone());
  return result;
}

TEST(StateDict, NamesInPyTorchsOrder) {
  const Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named_state(net)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("scale", "offset", "conv1.weight", "bn.weight", "bn.bias", "bn.running_mean",
                                 "bn.running_var", "bn.num_batches_tracked"));
}

TEST(StateDict, BorrowsTheModulesMemory) {
  Net net;
  const Dict state = state_dict(net);
  EXPECT_EQ(state.find("scale")->get_if<at::Tensor>()->const_data_ptr(), net.scale.const_data_ptr());
}

TEST(StateDict, LoadsIntoTheModulesOwnTensors) {
  Net from, to;
  const void* memory = to.conv1->weight.const_data_ptr();
  const LoadReport report = load_state_dict(to, state_dict(from));
  EXPECT_TRUE(report.missing.empty() && report.unexpected.empty());
  EXPECT_EQ(weights_sha256(to), weights_sha256(from));
  EXPECT_EQ(to.conv1->weight.const_data_ptr(), memory);
  EXPECT_TRUE(to.conv1->weight.requires_grad());
}

TEST(StateDict, DropsTheWrappersPrefix) {
  Net from, to;
  load_state_dict(to, renamed(state_dict(from), [](const auto& name) { return "module." + name; }));
  EXPECT_EQ(weights_sha256(to), weights_sha256(from));
}

TEST(StateDict, SaysWhichPrefixItDropped) {
  Net from, to;
  const auto load = [&](const std::string& prefix) {
    Net fresh;
    const auto wrapped = renamed(state_dict(from), [&](const auto& name) { return prefix + name; });
    const LoadReport report = load_state_dict(fresh, wrapped);
    EXPECT_EQ(weights_sha256(fresh), weights_sha256(from)) << prefix;
    return report.prefix;
  };
  EXPECT_EQ(load(""), "");
  EXPECT_EQ(load("module._orig_mod."), "module._orig_mod.");
  EXPECT_EQ(load("_orig_mod.module."), "_orig_mod.module.");
  EXPECT_THAT(error_of<ConfigError>([&] { load("model."); }), HasSubstr("the model lacks model.scale [1]"));
}

// torchvision's "model_ema".
TEST(StateDict, TakesAnAveragedModels) {
  Net from, to;
  Dict averaged = renamed(state_dict(from), [](const auto& name) { return "module." + name; });
  averaged.set("n_averaged", at::ones({}, at::kLong));
  EXPECT_EQ(load_state_dict(to, averaged).prefix, "module.");
  EXPECT_EQ(weights_sha256(to), weights_sha256(from));
}

// Straight from the file, into memory that the module has.
TEST(StateDict, LoadsFromAnOpenFile) {
  const TempDir dir;
  const auto make = [] { return torch::nn::Linear(torch::nn::LinearOptions(700, 300)); };
  torch::nn::Linear from = make(), to = make();
  write_pt(state_dict(*from), dir / "a.pt");
  const Value opened = open_checkpoint(dir / "a.pt");
  const void* const memory = to->weight.const_data_ptr();
  EXPECT_TRUE(is_stored(*opened.get_if<Dict>()->find("weight")->get_if<at::Tensor>()));
  load_state_dict(*to, *opened.get_if<Dict>());
  EXPECT_EQ(weights_sha256(*to), weights_sha256(*from));
  EXPECT_EQ(to->weight.const_data_ptr(), memory);
}

TEST(StateDict, KeepsAPrefixThatIsTheModelsOwn) {
  const auto wrapper = [] {
    torch::nn::Module module;
    module.register_module("module", torch::nn::Linear(2, 2));
    return module;
  };
  torch::nn::Module from = wrapper(), to = wrapper();
  load_state_dict(to, state_dict(from));
  EXPECT_EQ(weights_sha256(to), weights_sha256(from));
}

class StateDictRefusal : public testing::Test {
 protected:
  // The line that loading `state` is refused with; the module must not have changed.
  std::string refusal(const Dict& state, LoadOptions options = {.file = "f.pt"}) {
    const std::string before = weights_sha256(net_);
    const std::string line = error_of<ConfigError>([&] { load_state_dict(net_, state, options); });
    EXPECT_EQ(weights_sha256(net_), before);
    return line;
  }
  Net other_;
  Dict state_ = copied(state_dict(other_));
  Net net_;
};

TEST_F(StateDictRefusal, OtherShapesAndTypes) {
  state_.set("conv1.weight", at::zeros({4, 1, 5, 5}));
  EXPECT_EQ(refusal(state_),
            "f.pt: a checkpoint of another model: conv1.weight: the file has [4, 1, 5, 5], the model [4, 3, 5, 5]");
  EXPECT_THAT(refusal(state_, {.file = "f.pt", .strict = false}), HasSubstr("conv1.weight"));
  state_.set("conv1.weight", at::zeros({4, 3, 5, 5}, at::kHalf));
  EXPECT_EQ(refusal(state_),
            "f.pt: a checkpoint of another model: conv1.weight: the file has float16, the model float32");
  load_state_dict(net_, state_, {.convert_dtypes = true});
  EXPECT_EQ(net_.conv1->weight.abs().sum().item<float>(), 0);
}

TEST_F(StateDictRefusal, OtherNames) {
  const Dict state = renamed(state_, [](const auto& name) { return name == "offset" ? "shift" : name; });
  EXPECT_EQ(
      refusal(state),
      "f.pt: a checkpoint of another model: 1 that the file lacks, 1 that the model lacks: the file lacks offset [2]; "
      "the model lacks shift [2]");
  const LoadReport report = load_state_dict(net_, state, {.strict = false});
  EXPECT_THAT(report.missing, ElementsAre("offset"));
  EXPECT_THAT(report.unexpected, ElementsAre("shift"));
  Dict within = renamed(state_, [](const auto& name) { return "net." + name; });
  within.set("loss.weight", at::zeros({3}));
  EXPECT_THAT(refusal(within), ::testing::EndsWith("; the file has them all as net.scale and so on: strip the "
                                                   "prefix (--strip-prefix net.)"));
  const Dict strange = renamed(state_, [](const auto& name) { return "x" + name; });
  EXPECT_THAT(refusal(strange), HasSubstr("8 that the file lacks, 8 that the model lacks: "));
  EXPECT_THAT(refusal(strange), HasSubstr("the file lacks conv1.weight [4, 3, 5, 5]; "));
  EXPECT_THAT(refusal(strange), HasSubstr("; and 6 more"));

  EXPECT_THAT(refusal(strange, {.file = "f.pt", .strict = false}), HasSubstr("no name is in both"));
}

TEST_F(StateDictRefusal, WhatIsNoTensor) {
  state_.set("scale", 3);
  EXPECT_EQ(error_of<DataError>([&] { load_state_dict(net_, state_, {.file = "f.pt"}); }),
            "f.pt: scale: expected a tensor, found a whole number");
}

TEST_F(StateDictRefusal, UnlessAPartIsAskedFor) {
  state_.set("conv1.weight", at::full({4, 3, 5, 5}, 0.25));
  state_.set("scale", at::ones({7}));
  state_.set("head", at::ones({1}));
  const at::Tensor scale = net_.scale.detach().clone();
  const LoadReport report = load_state_dict(net_, state_, {.file = "f.pt", .partly = true});
  EXPECT_THAT(report.unfit, ElementsAre("scale: the file has [7], the model [1]", "the model lacks head [1]"));
  EXPECT_TRUE((net_.conv1->weight == 0.25).all().item<bool>());
  EXPECT_TRUE(at::equal(net_.scale, scale));
  EXPECT_THAT(refusal(Dict{{"scale", at::ones({7})}}, {.file = "f.pt", .partly = true}), HasSubstr("has [7]"));
}

// Of a BatchNorm whose statistics don't fit the counter stays, and scalars alone are no part of a network.
TEST_F(StateDictRefusal, APartThatIsNoWeightIsNone) {
  state_.set("bn.running_mean", at::ones({9}));
  state_.set("bn.num_batches_tracked", at::full({}, 5, at::kLong));
  const LoadReport report = load_state_dict(net_, state_, {.file = "f.pt", .partly = true});
  EXPECT_EQ(net_.bn->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_THAT(report.loaded, testing::Not(testing::Contains("bn.num_batches_tracked")));
  EXPECT_THAT(report.loaded, testing::Contains("conv1.weight"));
  EXPECT_THAT(refusal(Dict{{"scale", at::ones({1})}}, {.file = "f.pt", .partly = true}), HasSubstr("the file lacks"));
}

TEST_F(StateDictRefusal, NumbersOfAnotherKind) {
  for (const at::ScalarType dtype : {at::kChar, at::kBool, at::kComplexFloat}) {
    state_.set("conv1.weight", at::zeros({4, 3, 5, 5}, dtype));
    EXPECT_THAT(refusal(state_, {.file = "f.pt", .convert_dtypes = true}), HasSubstr(", the model float32"));
  }
}

// Module::to(dtype) casts them in libtorch alone.
TEST(StateDict, BatchNormsCountersMayBeOfAnotherType) {
  torch::nn::BatchNorm1d norm(2), doubled(2);
  norm->num_batches_tracked.fill_(7);
  const Dict state = state_dict(*norm);
  doubled->to(at::kDouble);
  EXPECT_EQ(doubled->num_batches_tracked.scalar_type(), at::kDouble);
  load_state_dict(*doubled, state, {.file = "f", .convert_dtypes = true});
  EXPECT_EQ(doubled->num_batches_tracked.item<double>(), 7);
  load_state_dict(*norm, state_dict(*doubled), {.file = "f", .convert_dtypes = true});
  EXPECT_EQ(norm->num_batches_tracked.scalar_type(), at::kLong);
}

// Files of PyTorch before 0.4.1 have no counters.
TEST(StateDict, BatchNormsCountersMayBeMissing) {
  torch::nn::BatchNorm1d norm(2);
  norm->num_batches_tracked.fill_(7);
  Dict state = state_dict(*norm);
  Dict old;
  for (const auto& [key, value] : state) {
    if (key_text(key) != "num_batches_tracked") old.set(key, value);
  }
  const LoadReport report = load_state_dict(*norm, old, {.file = "f"});
  EXPECT_EQ(report.uncounted, std::vector<std::string>{"num_batches_tracked"});
  EXPECT_TRUE(report.missing.empty());
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 7);
  // Without the statistics it is another network's file.
  Dict bare{{"weight", norm->weight.detach()}, {"bias", norm->bias.detach()}};
  EXPECT_THAT(error_of<ConfigError>([&] { load_state_dict(*norm, bare, {.file = "f"}); }),
              HasSubstr("the file lacks num_batches_tracked"));
}

TEST(WeightsSha256, IsDefinedToTheByte) {
  using namespace std::string_literals;
  const NamedTensors tensors{{"b", at::arange(6, at::kByte).view({2, 3}).t()}, {"a", at::ones({}, at::kShort)}};
  EXPECT_EQ(weights_sha256(tensors), sha256_hex("a\0int16\0\0\1\0b\0uint8\0"s + "3,2\0\0\3\1\4\2\5"s));
}

TEST(StateDict, ReadsPyTorchsLeNet) {
  const std::string path = fixtures() + "/checkpoints/lenet_ddp_module_prefix.pt";
  torch::nn::Module net;
  net.register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 20, 5)));
  net.register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(20, 20, 5)));
  net.register_module("fc", torch::nn::Linear(980, 10));
  load_state_dict(net, find_model_state(read_pt(path), path), {.file = path});
  const auto expected =
      nlohmann::ordered_json::parse(read_file(fixtures() + "/checkpoints/lenet_state_dict.expected.json"));
  EXPECT_EQ(describe(state_dict(net)).dump(), expected.dump());
}

}  // namespace
}  // namespace lockstep::checkpoint
