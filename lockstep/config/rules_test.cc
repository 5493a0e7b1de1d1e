#include "lockstep/config/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::config {
namespace {

using ::testing::HasSubstr;
using testing_support::refusal;

TEST(Rules, AreReadAsTheyAreWritten) {
  const std::vector<Rule> rules = {{"encoder.*", {{"lr_scale", "0.1"}, {"weight_decay", "0"}}},
                                   {"*.bias", {{"nesterov", "true"}}}};
  EXPECT_EQ(write_rules(rules), "encoder.*: lr_scale=0.1, weight_decay=0; *.bias: nesterov=true");
  EXPECT_EQ(read_rules("x", write_rules(rules)), rules);
  EXPECT_EQ(read_rules("x", " encoder.*:lr_scale=0.1,weight_decay = 0 ;*.bias:nesterov=true; "), rules);
}

TEST(Rules, MistakesAreNamed) {
  const auto line = [](const char* text) { return refusal([&] { read_rules("param-groups", text); }); };
  EXPECT_THAT(line(""), HasSubstr("--param-groups: expected rules"));
  EXPECT_THAT(line("encoder.*"), HasSubstr("'encoder.*': expected a pattern, a colon and settings"));
  EXPECT_THAT(line(": lr=1"), HasSubstr("expected a pattern"));
  EXPECT_THAT(line("a.*:"), HasSubstr("a.*: '': expected NAME=VALUE"));
  EXPECT_THAT(line("a.*: lr"), HasSubstr("a.*: 'lr': expected NAME=VALUE"));
  EXPECT_THAT(line("a.*: lr=1, lr=2"), HasSubstr("a.*: lr is there twice"));
}

}  // namespace
}  // namespace lockstep::config
