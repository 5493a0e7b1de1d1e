#include "lockstep/world/options/backend_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/config/values.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(BackendOptions, TakeEveryNameAndAuto) {
  BackendOptions options;
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(std::vector<config::GivenOption>{{"backend", "gloo"}, {"interface", "eth0,eth1"}, {"timeout", "5"}});
  EXPECT_EQ(options.backend, "gloo");
  EXPECT_EQ(options.interfaces, "eth0,eth1");
  EXPECT_EQ(options.timeout, 5);
  rows.apply(std::vector<config::GivenOption>{{"backend", "auto"}});
  EXPECT_EQ(options.backend, "auto");
}

TEST(BackendOptions, NameAllBackends) {
  BackendOptions options;
  config::OptionSet rows;
  options.declare(rows);
  const auto refusal = [&](const char* name) {
    return testing_support::refusal([&] { rows.apply(std::vector<config::GivenOption>{{"backend", name}}); });
  };
  std::vector<std::string> names = {"auto"};
  names.insert(names.end(), kBackendNames.begin(), kBackendNames.end());
  EXPECT_THAT(refusal("glo"), HasSubstr("--backend glo: expected " + config::either(names)));
}

TEST(BackendOptions, NoneBearsOnBits) {
  BackendOptions options;
  config::OptionSet rows;
  options.declare(rows);
  EXPECT_TRUE(rows.record().empty());
}

}  // namespace
}  // namespace lockstep
