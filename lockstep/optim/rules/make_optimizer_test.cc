#include "lockstep/optim/rules/make_optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
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

TEST(MakeOptimizer, MakesWhatItNames) {
  EXPECT_THAT(optimizer_names(), ::testing::Contains("sgd"));
  for (const std::string& name : optimizer_names()) EXPECT_EQ(make_optimizer(name, parameters())->name(), name);
  EXPECT_EQ(make_optimizer("adagrad", parameters())->lr(), 0.01);
  EXPECT_EQ(make_optimizer("sgd", parameters(), {{"lr", 0.5}})->lr(), 0.5);
}

TEST(MakeOptimizer, SaysWhatIsWrong) {
  EXPECT_THAT(error_of("adamv", {}), HasSubstr("did you mean adam"));
  EXPECT_THAT(error_of("shampoo", {}), HasSubstr("there are adagrad, adam, adamw"));
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
