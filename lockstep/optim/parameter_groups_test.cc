#include "lockstep/optim/parameter_groups.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/lamb.h"
#include "lockstep/optim/rules/lars.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

using ::testing::HasSubstr;
using testing_support::refusal;

struct Net : torch::nn::Module {
  Net() {
    for (auto& parameter : parameters()) at::NoGradGuard(), parameter.fill_(0.5);
  }
  torch::nn::Linear encoder = register_module("encoder", torch::nn::Linear(3, 4));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(4));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(4, 2));
};

std::vector<std::vector<std::string>> names_in(const Net& net, const std::vector<ParameterGroup>& groups) {
  std::vector<std::vector<std::string>> names;
  for (const ParameterGroup& group : groups) {
    auto& of_group = names.emplace_back();
    for (const at::Tensor& parameter : group.parameters) {
      for (const auto& item : net.named_parameters()) {
        if (item.value().is_same(parameter)) of_group.push_back(item.key());
      }
    }
  }
  return names;
}

using Names = std::vector<std::vector<std::string>>;

TEST(GroupParameters, WithoutRulesThereIsOneGroupInTheModulesOrder) {
  const Net net;
  const auto groups = group_parameters(net, {});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].parameters.size(), net.parameters().size());
  for (size_t i = 0; i < groups[0].parameters.size(); ++i) {
    EXPECT_TRUE(groups[0].parameters[i].is_same(net.parameters()[i]));
  }
}

TEST(GroupParameters, TheFirstRuleThatMatchesCounts) {
  const Net net;
  const auto groups =
      group_parameters(net, {.rules = {{"encoder.*", {{"lr_scale", 0.1}}}, {"*.bias", {{"weight_decay", 0.0}}}}});
  EXPECT_EQ(names_in(net, groups),
            (Names{{"norm.weight", "head.weight"}, {"encoder.weight", "encoder.bias"}, {"norm.bias", "head.bias"}}));
  EXPECT_TRUE(groups[0].options.empty());
  EXPECT_EQ(groups[1].options[0].name, "lr_scale");
}

TEST(GroupParameters, BiasesAndNormalisationNeedNotDecay) {
  const Net net;
  const auto groups = group_parameters(net, {.rules = {{"head.*", {{"lr_scale", 2.0}}}}, .decay_all = false});
  EXPECT_EQ(names_in(net, groups),
            (Names{{"encoder.weight"}, {"encoder.bias", "norm.weight", "norm.bias"}, {"head.weight"}, {"head.bias"}}));
  EXPECT_TRUE(groups[0].decays && !groups[1].decays && groups[2].decays && !groups[3].decays);
}

TEST(GroupParameters, ARuleForNothingIsAMistake) {
  const Net net;
  EXPECT_THAT(refusal([&] {
                group_parameters(net, {.rules = {{"encodr.*", {}}}});
              }),
              HasSubstr("parameter group encodr.*: matches no parameter; did you mean encoder.*?"));
  EXPECT_THAT(refusal([&] {
                group_parameters(net, {.rules = {{"*.wieght", {}}}});
              }),
              HasSubstr("did you mean *.weight?"));
  EXPECT_THAT(refusal([&] {
                group_parameters(net, {.rules = {{"decoder.block3.attention", {}}}});
              }),
              HasSubstr("matches no parameter, such as encoder.weight"));
  EXPECT_THAT(refusal([&] {
                group_parameters(net, {.rules = {{"*", {}}, {"head.*", {}}}});
              }),
              HasSubstr("parameter group head.*: rules before it take all parameters that it matches"));
}

TEST(GroupParameters, ASharedModuleIsThereOnce) {
  Net net;
  net.register_module("again", net.head.ptr());
  const auto groups = group_parameters(net, {.rules = {{"head.*", {{"lr_scale", 2.0}}}}});
  EXPECT_EQ(groups[0].parameters.size() + groups[1].parameters.size(), 6u);
}

TEST(ParameterGroups, OptionsAreChecked) {
  const Net net;
  const auto make = [&](const NamedOption& option) {
    return refusal([&] { make_optimizer("sgd", group_parameters(net, {.rules = {{"head.*", {option}}}})); });
  };
  EXPECT_THAT(make({"lr_scale", -1.0}), HasSubstr("lr_scale is -1, not 0 or more"));
  EXPECT_THAT(make({"weight_decai", 0.1}), HasSubstr("did you mean weight_decay?"));
  EXPECT_THAT(make({"momentum", -0.1}), HasSubstr("momentum"));
}

TEST(ParameterGroups, RatesKeepTheirRatios) {
  const Net net;
  const auto groups = group_parameters(net, {.rules = {{"encoder.*", {{"lr_scale", 0.1}}}, {"norm.*", {{"lr", 0.5}}}}});
  const auto sgd = make_optimizer("sgd", groups, {{"lr", 0.2}});
  const auto rates = [&] {
    std::vector<double> all;
    for (const auto& group : sgd->param_groups()) all.push_back(group.options().get_lr());
    return all;
  };
  EXPECT_EQ(rates(), (std::vector<double>{0.2, 0.2 * 0.1, 0.5}));
  sgd->set_lr(0);
  EXPECT_EQ(rates(), (std::vector<double>{0, 0, 0}));
  sgd->set_lr(0.4);
  EXPECT_EQ(sgd->lr(), 0.4);
  EXPECT_EQ(rates(), (std::vector<double>{0.4, 0.4 * 0.1, 0.4 * 2.5}));
  EXPECT_EQ(sgd->lr_scales(), (std::vector<double>{1, 0.1, 2.5}));
}

std::vector<double> rates_of(FusedOptimizer& optimizer) {
  std::vector<double> all;
  for (const auto& group : optimizer.param_groups()) all.push_back(group.options().get_lr());
  return all;
}

// PyTorch's fine-tuning order: the backbone with a rate of its own comes first.
TEST(ParameterGroups, TheOptimizersRateIsTheBaseInAnyOrder) {
  const Net net;
  const std::vector<ParameterGroup> groups = {{net.encoder->parameters(), {{"lr", 0.001}}},
                                              {net.head->parameters(), {}}};
  const auto sgd = make_optimizer("sgd", groups, {{"lr", 0.1}});
  EXPECT_EQ(sgd->lr(), 0.1);
  sgd->set_lr(0.1);
  EXPECT_EQ(rates_of(*sgd), (std::vector<double>{0.001, 0.1}));
  SGD by_hand({param_group(net.encoder->parameters(), SgdOptions{.lr = 0.001}), {net.head->parameters()}}, {.lr = 0.1});
  by_hand.set_lr(0.2);
  EXPECT_EQ(rates_of(by_hand), (std::vector<double>{0.002, 0.2}));
  by_hand.add_param_group({net.norm->parameters()});
  by_hand.set_lr(0.4);
  EXPECT_EQ(rates_of(by_hand), (std::vector<double>{0.004, 0.4, 0.4})) << "a group without options follows";
}

TEST(ParameterGroups, RatesOfNoCommonBaseAreRefusedByASchedule) {
  const Net net;
  const auto groups = [&](double first, double second) {
    return std::vector{param_group(net.encoder->parameters(), SgdOptions{.lr = first}),
                       param_group(net.head->parameters(), SgdOptions{.lr = second})};
  };
  SGD unequal(groups(0.001, 0.1)), equal(groups(0.1, 0.1));
  EXPECT_EQ(rates_of(unequal), (std::vector<double>{0.001, 0.1}));
  EXPECT_THAT(refusal([&] { unequal.set_lr(0.1); }),
              HasSubstr("sgd: its groups have rates 0.001 and 0.1, and it has none of its own to which they could keep "
                        "their ratio; give it options with a rate, or the groups lr_scale"));
  EXPECT_THAT(refusal([&] {
                unequal.over({net.encoder->parameters(), net.head->parameters()})->set_lr(0.1);
              }),
              HasSubstr("give it options with a rate"));
  equal.set_lr(0.05);
  EXPECT_EQ(rates_of(equal), (std::vector<double>{0.05, 0.05}));
}

// A ratio that was changed midway, as for a group that is unfrozen.
TEST(ParameterGroups, RatiosComeBack) {
  const Net net;
  const auto make = [&](double first, double second) {
    return make_optimizer("sgd",
                          {{net.encoder->parameters(), {{"lr", first}}}, {net.head->parameters(), {{"lr", second}}}},
                          {{"lr", 0.1}});
  };
  const auto one = make(0.1, 0.01), two = make(0.1, 0.01);
  static_cast<GroupOptions&>(one->param_groups()[1].options()).lr_scale = 0.5;
  one->set_lr(0.1);
  two->load_state_dict(one->state_dict());
  for (auto* each : {one.get(), two.get()}) each->set_lr(0.05);
  EXPECT_EQ(rates_of(*two), rates_of(*one));
  static_cast<GroupOptions&>(one->param_groups()[1].options()).lr_scale = 1;
  two->load_state_dict(one->state_dict());
  two->set_lr(0.05);
  EXPECT_EQ(rates_of(*two), (std::vector<double>{0.05, 0.05}));
}

// PyTorch has no lr_scale: the ratios are those of the rates that its schedulers began with, or of the rates.
TEST(ParameterGroups, RatiosOfPyTorchsCheckpointsAreThoseOfItsRates) {
  const Net net;
  const auto make = [&](double first, double second) {
    return make_optimizer("sgd",
                          {{net.encoder->parameters(), {{"lr", first}}}, {net.head->parameters(), {{"lr", second}}}},
                          {{"lr", 0.1}});
  };
  const auto pytorchs = [&](std::vector<NamedOptions> options) {
    OptimizerState state = make(0.1, 0.1)->state_dict();
    for (size_t g = 0; g < 2; ++g) {
      std::erase_if(state.groups[g].options,
                    [](const auto& each) { return each.name == "lr_scale" || each.name == "lr"; });
      for (const auto& option : options[g]) state.groups[g].options.push_back(option);
    }
    return state;
  };
  const auto after = [&](double first, double second, const std::vector<NamedOptions>& options) {
    const auto sgd = make(first, second);
    sgd->load_state_dict(pytorchs(options));
    sgd->set_lr(0.1);
    return rates_of(*sgd);
  };
  EXPECT_EQ(after(0.1, 0.1, {{{"lr", 0.1}}, {{"lr", 0.001}}}), (std::vector<double>{0.1, 0.001}));
  EXPECT_EQ(after(0.1, 0.001, {{{"lr", 0.4}}, {{"lr", 0.4}}}), (std::vector<double>{0.1, 0.1}));
  EXPECT_EQ(after(0.001, 0.1, {{{"lr", 0.001}}, {{"lr", 0.1}}}), (std::vector<double>{0.001, 0.1}));
  EXPECT_EQ(after(0.1, 0.1, {{{"lr", 0.0}, {"initial_lr", 0.1}}, {{"lr", 0.0}, {"initial_lr", 0.05}}}),
            (std::vector<double>{0.1, 0.05}))
      << "at the end of a schedule";
  EXPECT_EQ(after(0.1, 0.1, {{{"lr", 0.0}}, {{"lr", 0.02}}}), (std::vector<double>{0, 0.1})) << "frozen by its rate";
}

TEST(ParameterGroups, LarsAndLambDoWithoutTheirRatio) {
  const Net net;
  const auto groups = group_parameters(net, {.decay_all = false});
  const auto lars = param_groups(groups, LarsOptions{.weight_decay = 0.1});
  const auto& decayed = static_cast<const Group<LarsOptions>&>(lars[0].options()).values;
  const auto& plain = static_cast<const Group<LarsOptions>&>(lars[1].options()).values;
  EXPECT_TRUE(decayed.adapt && decayed.weight_decay == 0.1);
  EXPECT_TRUE(!plain.adapt && plain.weight_decay == 0);
  const auto lamb = param_groups(groups, LambOptions{.use_nvlamb = true});
  EXPECT_FALSE(static_cast<const Group<LambOptions>&>(lamb[1].options()).values.use_nvlamb);
}

// Steps as libtorch's own SGD takes with the same groups, and a checkpoint in PyTorch's layout.
TEST(ParameterGroups, StepAsLibtorchs) {
  const Net ours, theirs;
  const auto rules = [](const Net& net) {
    return group_parameters(net, {.rules = {{"head.*", {{"lr_scale", 0.5}, {"momentum", 0.0}}}}, .decay_all = false});
  };
  const auto sgd = make_optimizer("sgd", rules(ours), {{"lr", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.01}});
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const ParameterGroup& group : rules(theirs)) {
    const bool head = !group.options.empty();
    auto options = std::make_unique<torch::optim::SGDOptions>(head ? 0.05 : 0.1);
    options->momentum(head ? 0 : 0.9).weight_decay(group.decays ? 0.01 : 0);
    groups.emplace_back(group.parameters, std::move(options));
  }
  torch::optim::SGD reference(groups, torch::optim::SGDOptions(0.1));
  for (int step = 0; step < 3; ++step) {
    for (const Net* net : {&ours, &theirs}) {
      int number = step;
      for (auto& parameter : net->parameters()) parameter.mutable_grad() = at::full_like(parameter, 0.1 * ++number);
    }
    sgd->update({});
    reference.step();
  }
  const auto mine = ours.named_parameters(), wanted = theirs.named_parameters();
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_TRUE(at::allclose(mine[i].value(), wanted[i].value(), 1e-6, 1e-7)) << mine[i].key();
  }
  const OptimizerState state = sgd->state_dict();
  ASSERT_EQ(state.groups.size(), 4u);
  EXPECT_EQ(state.groups[1].parameters, (std::vector<int64_t>{1, 2, 3}));
  const auto again = make_optimizer("sgd", rules(ours), {{"lr", 0.1}});
  again->load_state_dict(state);
  EXPECT_EQ(again->param_groups()[2].options().get_lr(), 0.05);
  EXPECT_THAT(refusal([&] { make_optimizer("sgd", group_parameters(ours, {}))->load_state_dict(state); }),
              HasSubstr("group"));
}

}  // namespace
}  // namespace lockstep::optim
