#include "lockstep/optim/options/optimizer_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::optim {
namespace {

using ::testing::HasSubstr;

TEST(OptimizerOptions, AreReadByName) {
  OptimizerOptions options;
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(std::vector<config::GivenOption>{{"optimizer", "novograd"}, {"weight-decay", "0.1"}, {"ema", "0.9"}});
  EXPECT_EQ(options.name, "novograd");
  EXPECT_EQ(options.weight_decay, 0.1);
  EXPECT_EQ(options.ema, 0.9);
  EXPECT_THAT(testing_support::refusal([&] {
                rows.apply(std::vector<config::GivenOption>{{"optimizer", "adan"}});
              }),
              HasSubstr("expected sgd, adagrad, adam"));
}

TEST(OptimizerOptions, ParameterGroupsAreRules) {
  OptimizerOptions options;
  config::OptionSet rows;
  options.declare(rows);
  EXPECT_EQ(rows.find("param-groups")->get(), std::nullopt);
  rows.apply_as_given(std::vector<config::GivenOption>{
      {"param-groups", "encoder.*: lr_scale=0.1; *.bias: weight_decay=0"}, {"decay-all", "off"}});
  EXPECT_FALSE(options.decay_all);
  ASSERT_EQ(options.param_groups.size(), 2u);
  EXPECT_EQ(options.param_groups[1].match, "*.bias");
  const auto words = rows.arguments();
  EXPECT_NE(std::find(words.begin(), words.end(), "--param-groups=encoder.*: lr_scale=0.1; *.bias: weight_decay=0"),
            words.end());
  EXPECT_EQ(testing_support::refusal([&] { options.check("sgd"); }), "");
  options.param_groups[0].settings.emplace_back("lr", "0.1");
  EXPECT_THAT(testing_support::refusal([&] { options.check("sgd"); }),
              HasSubstr("encoder.*: has both lr and lr_scale"));
}

TEST(OptimizerOptions, MomentumGoesWithSomeOptimizersOnly) {
  OptimizerOptions options;
  options.momentum = 0.9;
  EXPECT_EQ(testing_support::refusal([&] { options.check("rmsprop"); }), "");
  EXPECT_THAT(testing_support::refusal([&] { options.check("adam"); }), HasSubstr("--momentum goes with --optimizer"));
  options.nesterov = true;
  EXPECT_EQ(testing_support::refusal([&] { options.check("lars"); }), "");
  EXPECT_THAT(testing_support::refusal([&] { options.check("rmsprop"); }), HasSubstr("--nesterov goes with"));
  options.momentum = 0;
  EXPECT_THAT(testing_support::refusal([&] { options.check("sgd"); }), HasSubstr("needs a --momentum above 0"));
}

}  // namespace
}  // namespace lockstep::optim
