#include "lockstep/optim/named_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NamedOptions, SetWhatTheyName) {
  SgdOptions options;
  read_options({{"lr", int64_t{2}}, {"momentum", 0.5}, {"nesterov", true}}, options);
  EXPECT_EQ(options.lr, 2);
  EXPECT_EQ(options.momentum, 0.5);
  EXPECT_TRUE(options.nesterov);
  EXPECT_EQ(options.weight_decay, 0);
}

TEST(NamedOptions, UnknownNamesGetTheNearest) {
  SgdOptions sgd;
  EXPECT_THAT(error_of([&] { read_options({{"momentun", 0.9}}, sgd); }), HasSubstr("did you mean momentum?"));
  AdamOptions adam;
  EXPECT_THAT(error_of([&] { read_options({{"momentum", 0.9}}, adam); }), HasSubstr("adam has no option \"momentum\""));
}

TEST(NamedOptions, WrongTypesAndRangesAreErrors) {
  AdamOptions adam;
  EXPECT_THAT(error_of([&] { read_options({{"betas", 0.9}}, adam); }), HasSubstr("pair"));
  EXPECT_THAT(error_of([&] { read_options({{"lr", true}}, adam); }), HasSubstr("lr is True"));
  EXPECT_THAT(error_of([&] { read_options({{"amsgrad", 1.0}}, adam); }), HasSubstr("True or False"));
  EXPECT_THAT(error_of([&] { read_options({{"lr", std::string("big")}}, adam); }), HasSubstr("\"big\""));
  EXPECT_THAT(error_of([&] { read_options({{"lr", -0.5}}, adam); }), HasSubstr("-0.5"));
}

TEST(NamedOptions, PyTorchsOwnRoundTrip) {
  const AdamWOptions before{.lr = 0.5, .betas = {0.25, 0.75}, .amsgrad = true};
  const NamedOptions named = write_options(before);
  std::vector<std::string> names;
  for (const NamedOption& option : named) names.push_back(option.name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach",
                                            "capturable", "differentiable", "fused", "decoupled_weight_decay"));
  AdamWOptions after;
  read_pytorch_options(named, after);
  EXPECT_EQ(after.lr, 0.5);
  EXPECT_EQ(after.betas, before.betas);
  EXPECT_TRUE(after.amsgrad);
}

TEST(NamedOptions, ACheckpointOfTheOtherAdamDoesNotFit) {
  AdamOptions adam;
  EXPECT_THAT(error_of([&] { read_pytorch_options(write_options(AdamWOptions{}), adam); }),
              HasSubstr("decoupled_weight_decay=True"));
}

TEST(NamedOptions, BystandersOfACheckpointArePassedOver) {
  SgdOptions sgd;
  read_pytorch_options({{"lr", 0.5}, {"initial_lr", 1.0}, {"fused", true}, {"foreach", std::monostate()}}, sgd);
  EXPECT_EQ(sgd.lr, 0.5);
  EXPECT_THAT(error_of([&] { read_pytorch_options({{"rho", 0.9}}, sgd); }), HasSubstr("rho"));
}

}  // namespace
}  // namespace lockstep::optim
