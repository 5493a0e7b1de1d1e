#include "lockstep/apps/commands/plain_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

template <typename Options>
std::string refused(const std::vector<std::string>& words) {
  return testing_support::refusal([&] { Command<Options>().read(words); });
}

TEST(PlainCommands, AreRead) {
  Command<DoctorOptions> doctor;
  EXPECT_EQ(doctor.read({"--json"}), std::nullopt);
  EXPECT_TRUE(doctor.options().json);
  Command<InspectOptions> inspect;
  inspect.read({"a.pt", "--json"});
  EXPECT_EQ(inspect.options().file, "a.pt");
  EXPECT_THAT(inspect.arguments(), ElementsAre("inspect", "a.pt", "--json"));
}

TEST(PlainCommands, BadLines) {
  EXPECT_THAT(refused<InspectOptions>({}), StartsWith("inspect: FILE is missing"));
  EXPECT_THAT(refused<InspectOptions>({"a", "b"}), StartsWith("inspect: b: one word too many"));
  EXPECT_THAT(refused<DoctorOptions>({"now"}), StartsWith("doctor: now: one word too many"));
}

TEST(PlainCommands, HelpNamesTheirOptions) {
  EXPECT_THAT(*Command<InspectOptions>().read({"--help"}), testing::HasSubstr("--json"));
  EXPECT_THAT(*Command<DoctorOptions>().read({"-h"}), testing::HasSubstr("Usage: lockstep doctor"));
}

}  // namespace
}  // namespace lockstep::apps
