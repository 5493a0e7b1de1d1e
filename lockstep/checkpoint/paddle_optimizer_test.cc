#include "lockstep/checkpoint/paddle_optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/conversion.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/paddle_names.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using testing_support::refusal;

constexpr std::pair kBetas{0.9, 0.999};
const std::string kFolder = LOCKSTEP_SOURCE_DIR "/tests/fixtures/paddle/";

const at::Tensor& tensor_of(const Dict& dict, const std::string& name) {
  return *dict.find(name)->get_if<at::Tensor>();
}

// Of a Linear and a layer of one weight.
std::vector<PaddleParameter> two() {
  return {{"fc.weight", "linear_0.w_0", true, {3, 2}}, {"scale", "scale_0.w_0", false, {4}}};
}

Dict momentum() {
  return {{"linear_0.w_0_velocity_0", at::arange(6, at::kFloat).view({3, 2})},
          {"scale_0.w_0_velocity_0", at::ones({4})}};
}

Dict group_of(const Dict& state) { return *state.find("param_groups")->get_if<List>()->at(0).get_if<Dict>(); }

// Two steps of Adam in Paddle 3.3.
TEST(PaddleOptimizer, TakesWhatPaddleHasSaved) {
  const Value params = read_checkpoint(kFolder + "model.pdparams"), moments = read_checkpoint(kFolder + "model.pdopt");
  const Converted both = from_paddle_files(params, moments, {"p", "o"}, kBetas);
  const Value root(both.value);
  const ValueView optimizer = ValueView(root, "f")["optimizer"];
  EXPECT_EQ(optimizer["state"].dict().size(), 4u);
  EXPECT_EQ(optimizer["state"][int64_t{3}]["step"].tensor().item<double>(), 2);
  EXPECT_EQ(optimizer["state"][int64_t{0}]["exp_avg"].tensor().sizes(), (std::vector<int64_t>{4, 3})) << "a Linear's";
  EXPECT_DOUBLE_EQ(optimizer["param_groups"].items().at(0)["lr"].number(), 0.01) << "the scheduler's";
  const Converted back = to_paddle_optimizer(root, "f", params, "p");
  for (const auto& [key, value] : *moments.get_if<Dict>()) {
    const auto* theirs = value.get_if<at::Tensor>();
    if (theirs == nullptr) continue;
    EXPECT_TRUE(at::allclose(tensor_of(back.value, key_text(key)), *theirs, 2e-7, 0)) << key_text(key);
  }
  EXPECT_FALSE(back.value.contains("LR_Scheduler")) << "nobody knows whether it counts steps or epochs";
}

TEST(PaddleOptimizer, MomentumsVelocityIsABuffer) {
  const PaddleOptimizer torchs = optimizer_from_paddle(momentum(), two(), kBetas, "o");
  EXPECT_EQ(torchs.name, "SGD");
  const Value state(torchs.state);
  const at::Tensor buffer = ValueView(state, "f")["state"][int64_t{0}]["momentum_buffer"].tensor();
  EXPECT_TRUE(buffer.equal(at::arange(6, at::kFloat).view({3, 2}).t()));
  const Dict back = optimizer_to_paddle(state, two(), "f").state;
  EXPECT_TRUE(tensor_of(back, "linear_0.w_0_velocity_0").equal(tensor_of(momentum(), "linear_0.w_0_velocity_0")));
  EXPECT_DOUBLE_EQ(group_of(torchs.state).find("momentum")->get_if<double>()[0], 0.9);
}

TEST(PaddleOptimizer, FrozenParametersHaveNoState) {
  Dict some;
  some.set("scale_0.w_0_velocity_3", at::ones({4}));  // of the process's fourth optimizer
  const Value state(optimizer_from_paddle(some, two(), kBetas, "o").state);
  EXPECT_EQ(ValueView(state, "f")["state"].dict().size(), 1u);
  EXPECT_TRUE(optimizer_to_paddle(state, two(), "f").state.contains("scale_0.w_0_velocity_0"));
}

// In fp32 the first power is 0 long before the second one.
TEST(PaddleOptimizer, StepsAreToldByThePowersOfTheBetas) {
  for (const int64_t steps : {1, 7, 500, 5000, 40'000}) {
    Dict adam;
    float first = 0.9F, second = 0.999F;
    for (int64_t i = 0; i < steps; ++i) first *= 0.9F, second *= 0.999F;
    for (const PaddleParameter& each : two()) {
      adam.set(each.paddle + "_moment1_0", at::zeros(each.sizes));
      adam.set(each.paddle + "_moment2_0", at::zeros(each.sizes));
      adam.set(each.paddle + "_beta1_pow_acc_0", at::full({1}, first));
      adam.set(each.paddle + "_beta2_pow_acc_0", at::full({1}, second));
    }
    const Value state(optimizer_from_paddle(adam, two(), kBetas, "o").state);
    EXPECT_NEAR(ValueView(state, "f")["state"][int64_t{0}]["step"].tensor().item<double>(), steps, 1e-3 * steps);
    const std::string why = refusal<DataError>([&] { optimizer_from_paddle(adam, two(), {0.8, 0.999}, "o"); });
    if (steps < 500) EXPECT_THAT(why, HasSubstr("give the betas")) << steps;
  }
}

TEST(PaddleOptimizer, MastersAreTheWeights) {
  Dict half = momentum();
  half.set("master_weights", Dict{{"linear_0.w_0", at::arange(6, at::kFloat).view({3, 2})}});
  const Dict masters = masters_from_paddle(half, two(), "o");
  EXPECT_EQ(masters.size(), 1u);
  EXPECT_TRUE(tensor_of(masters, "fc.weight").equal(at::arange(6, at::kFloat).view({3, 2}).t()));
  Dict of_masters;
  of_masters.set("scale_0.w_0_fp32_master_0_velocity_0", at::ones({4}));
  EXPECT_EQ(optimizer_from_paddle(of_masters, two(), kBetas, "o").name, "SGD");
}

TEST(PaddleOptimizer, WhatDoesNotFitIsNamed) {
  const auto from = [](const Dict& optimizer) {
    return refusal<DataError>([&] { optimizer_from_paddle(optimizer, two(), kBetas, "net.pdopt"); });
  };
  EXPECT_THAT(from({}), HasSubstr("net.pdopt: an optimizer without state"));
  EXPECT_THAT(from({{"conv2d_0.w_0_velocity_0", at::ones({4})}}),
              HasSubstr("net.pdopt: conv2d_0.w_0_velocity_0 is of no parameter of the .pdparams"));
  EXPECT_THAT(from({{"scale_0.w_0_mean_square_0", at::ones({4})}, {"scale_0.w_0_momentum_0", at::ones({4})}}),
              HasSubstr("the state of an optimizer that has mean_square, momentum, which PyTorch's don't have"));
  EXPECT_THAT(from({{"scale_0.w_0_velocity_0", at::ones({5})}}),
              HasSubstr("net.pdopt: scale: velocity: is [5] in Paddle's layout, and the parameter [4]"));
  EXPECT_THAT(from({{"scale_0.w_0_moment1_0", at::ones({4})}}), HasSubstr("scale: has no beta1_pow_acc"));
  EXPECT_THAT(from({{"linear_0.w_0_velocity_0", at::ones({3, 2})}, {"scale_0.w_0_mean_square_0", at::ones({4})}}),
              HasSubstr("the state of an optimizer that has mean_square"));
  EXPECT_THAT(from({{"scale_0.w_0_velocity_0", at::ones({4})}, {"scale_0.w_0_velocity_1", at::ones({4})}}),
              HasSubstr("net.pdopt: has more than one velocity of scale"));
  EXPECT_THAT(refusal<DataError>([] {
                paddle_parameters({{"w", at::ones({2})}}, {}, "net.pdparams");
              }),
              HasSubstr("net.pdparams: has no table of Paddle's own names"));
  const Value state(optimizer_from_paddle(momentum(), two(), kBetas, "o").state);
  EXPECT_THAT(refusal<DataError>([&] { optimizer_to_paddle(state, {two()[0]}, "net.pt"); }),
              HasSubstr("net.pt: the optimizer has 2 parameters, and the names are of 1"));
  EXPECT_THAT(refusal<DataError>([&] {
                optimizer_to_paddle(state, {two()[1], two()[0]}, "net.pt");
              }),
              HasSubstr("in Paddle's layout, and the parameter"));
  // RMSprop with momentum, and NAdam, have more than Momentum and Adam.
  for (const auto& [own, more] : {std::pair{"momentum_buffer", "square_avg"}, {"exp_avg", "mu_product"}}) {
    const Dict group{{"params", List{Value(0)}}, {"betas", Tuple{{0.9, 0.999}}}};
    const Dict state_of_one{{own, at::ones({4})}, {more, at::ones({4})}, {"step", 3}};
    const Value rms(Dict{{"state", Dict{{int64_t{0}, state_of_one}}}, {"param_groups", List{group}}});
    EXPECT_THAT(refusal<DataError>([&] { optimizer_to_paddle(rms, {two()[1]}, "net.pt"); }),
                HasSubstr("of scale is of no optimizer that Paddle has with the same state"));
  }
  EXPECT_THAT(refusal<DataError>([] {
                to_paddle_optimizer(Dict{{"epoch", 1}}, "net.pt", {}, "p");
              }),
              HasSubstr("net.pt: holds no optimizer's state"));
}

TEST(PaddleOptimizer, WhatPyTorchsStateMeansBySomethingElseIsRefused) {
  const auto refused = [](const Dict& options, size_t groups = 1) {
    Dict group = options;
    group.set("params", List{Value(0)});
    List all{group};
    if (groups == 2) all.emplace_back(Dict{{"params", List{Value(1)}}});
    const Value state(
        Dict{{"state", Dict{{int64_t{0}, Dict{{"momentum_buffer", at::ones({4})}}}}}, {"param_groups", all}});
    return refusal<DataError>([&] { optimizer_to_paddle(state, {two()[1]}, "net.pt"); });
  };
  EXPECT_THAT(refused({{"maximize", true}}), HasSubstr("net.pt: maximize is set, which Paddle doesn't have"));
  EXPECT_THAT(refused({{"dampening", 0.5}}), HasSubstr("dampening, which Paddle doesn't have"));
  EXPECT_THAT(refused({{"lr_decay", 0.1}}), HasSubstr("lr_decay, which Paddle doesn't have"));
  EXPECT_THAT(refused({{"trust_coefficient", 0.02}}), HasSubstr("the optimizer is LARS"));
  EXPECT_THAT(refused({{"decoupled_weight_decay", false}}), HasSubstr("the optimizer is RAdam"));
  EXPECT_THAT(refused({}, 2), HasSubstr("has 2 groups of parameters, whose order is not the model's"));
}

TEST(PaddleOptimizer, AmsgradIsToldByItsState) {
  Dict adam;
  for (const char* name : {"moment1", "moment2", "moment2_max"}) {
    adam.set(cat("scale_0.w_0_", name, "_0"), at::ones({4}));
  }
  adam.set("scale_0.w_0_beta1_pow_acc_0", at::full({1}, 0.81));
  adam.set("scale_0.w_0_beta2_pow_acc_0", at::full({1}, 0.998001));
  const PaddleOptimizer torchs = optimizer_from_paddle(adam, {two()[1]}, kBetas, "o");
  EXPECT_TRUE(*group_of(torchs.state).find("amsgrad")->get_if<bool>());
  EXPECT_THAT(torchs.notes.at(0), HasSubstr("of Adam, AdamW or Lamb, after 1 steps by betas of 0.9 and 0.999"));
}

TEST(PaddleOptimizer, ParametersAreThoseOfTheModel) {
  const at::Tensor square = at::ones({2, 2});
  const Dict state{{"q.weight", square},
                   {"words.weight", square},
                   {"tied.weight", square},
                   {"bn._mean", at::ones({2})},
                   {"prior_mean", at::ones({2})},
                   {"StructuredToParameterName@@", Dict{{"q.weight", "linear_0.w_0"},
                                                        {"words.weight", "embedding_0.w_0"},
                                                        {"tied.weight", "linear_0.w_0"},
                                                        {"bn._mean", "batch_norm_0.w_1"},
                                                        {"prior_mean", "net_0.w_0"}}}};
  const auto linear = likely_linear_weights(state);
  EXPECT_EQ(linear, (std::set<std::string>{"q.weight", "tied.weight"})) << "by Paddle's names, without a bias too";
  const auto parameters = paddle_parameters(state, linear, "p");
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(parameters[2].name, "prior_mean");
  EXPECT_TRUE(parameters[0].is_linear && !parameters[1].is_linear);
}

TEST(PaddleOptimizer, OneIsNoModelAndNamesOfOursAreNoNames) {
  EXPECT_TRUE(is_paddle_optimizer(momentum()));
  EXPECT_TRUE(is_paddle_optimizer({{"linear_0.w_0_beta1_pow_acc_0", at::ones({1})}}));
  EXPECT_FALSE(is_paddle_optimizer({{"moment.weight", at::ones({1})}, {"fc_1", at::ones({1})}}));
  EXPECT_THAT(refusal<DataError>([] { convert(momentum(), {.file = "net.pdopt", .from_paddle = true}); }),
              HasSubstr("net.pdopt: is an optimizer's state; give it as --optimizer beside its .pdparams"));
  const Value own(Dict{{"scale", at::ones({4})}, {"StructuredToParameterName@@", Dict{{"scale", "scale"}}}});
  const Value root(Dict{{"optimizer", optimizer_from_paddle(momentum(), two(), kBetas, "o").state}});
  EXPECT_THAT(refusal<DataError>([&] { to_paddle_optimizer(root, "net.pt", own, "ours.pdparams"); }),
              HasSubstr("ours.pdparams: has no names of Paddle's"));
}

}  // namespace
}  // namespace lockstep::checkpoint
