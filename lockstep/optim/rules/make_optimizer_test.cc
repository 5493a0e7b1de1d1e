#include "lockstep/optim/rules/make_optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/options/optimizer_options.h"

namespace lockstep::optim {
namespace {

using testing::HasSubstr;

std::vector<at::Tensor> parameters() { return {at::ones({2}).requires_grad_(), at::ones({3}).requires_grad_()}; }

std::string error_of(std::string_view name, const NamedOptions& options) {
  try {
    make_optimizer(name, parameters(), options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

TEST(MakeOptimizer, MakesWhatItNames) {
  EXPECT_THAT(optimizer_names(), ::testing::IsSupersetOf({"adagrad", "adam", "adamw", "lamb", "lars", "nadam",
                                                          "novograd", "rmsprop", "sgd"}));
  for (const std::string& name : optimizer_names()) EXPECT_EQ(make_optimizer(name, parameters())->name(), name);
  EXPECT_EQ(make_optimizer("adagrad", parameters())->lr(), 0.01);
  EXPECT_EQ(make_optimizer("sgd", parameters(), {{"lr", 0.5}})->lr(), 0.5);
}

TEST(MakeOptimizer, TakesAParameterOnce) {
  const at::Tensor parameter = at::ones({4}).requires_grad_(), other = at::ones({2}).requires_grad_();
  const auto optimizer = make_optimizer("sgd", {parameter, other, parameter}, {{"lr", 0.5}});
  parameter.mutable_grad() = at::ones({4});
  optimizer->update({});
  EXPECT_TRUE(at::equal(parameter, at::full({4}, 0.5f))) << "stepped once";
  EXPECT_EQ(optimizer->parameters().size(), 2u);
  const auto in_two_groups = [&] {
    make_optimizer("sgd", std::vector<ParameterGroup>{{{parameter}, {}}, {{other, parameter}, {}}});
  };
  EXPECT_THAT(testing_support::refusal(in_two_groups), HasSubstr("[4] is in two groups of the optimizer, 0 and 1"));
  const at::Tensor complex = at::ones({3}, at::kComplexFloat).requires_grad_();
  EXPECT_THAT(testing_support::refusal([&] { make_optimizer("adam", {complex}); }), HasSubstr("no complex parameters"));
}

TEST(MakeOptimizer, SaysWhatIsWrong) {
  EXPECT_THAT(error_of("adamv", {}), HasSubstr("did you mean adam"));
  EXPECT_THAT(error_of("shampoo", {}), HasSubstr("there are " + joined(optimizer_names())));
  EXPECT_THAT(error_of("sgd", {{"momentum", -1.0}}), HasSubstr("momentum is -1"));
  EXPECT_THAT(error_of("adamw", {{"momentum", 0.9}}), HasSubstr("adamw has no option"));
}

TEST(MakeOptimizer, GroupsStartFromTheCommonOptions) {
  const auto p = parameters();
  const auto optimizer =
      make_optimizer("sgd", std::vector<ParameterGroup>{{{p[0]}, {}}, {{p[1]}, {{"weight_decay", 0.0}}}},
                     {{"lr", 0.5}, {"weight_decay", 1.0}});
  for (const at::Tensor& parameter : p) parameter.mutable_grad() = at::zeros_like(parameter);
  optimizer->update({});
  EXPECT_TRUE(at::equal(p[0], at::full({2}, 0.5)));
  EXPECT_TRUE(at::equal(p[1], at::ones({3})));
}

// What the command line lists.
TEST(MakeOptimizer, TheListOfNamesIsTheRegistrys) {
  std::set<std::string> listed;
  const std::vector<at::Tensor> parameters = {at::zeros({2}).set_requires_grad(true)};
  const auto takes = [&](std::string_view name, const NamedOptions& options) {
    try {
      return make_optimizer(name, parameters, options) != nullptr;
    } catch (const ConfigError&) {
      return false;
    }
  };
  for (const OptimizerTraits& traits : kOptimizers) {
    listed.emplace(traits.name);
    EXPECT_EQ(takes(traits.name, {{"momentum", 0.5}}), traits.momentum) << traits.name;
    EXPECT_EQ(takes(traits.name, {{"momentum", 0.5}, {"nesterov", true}}), traits.nesterov) << traits.name;
  }
  const auto names = optimizer_names();
  EXPECT_EQ(listed, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace lockstep::optim
