#include "lockstep/base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(Logger, PrefixesAndFilters) {
  std::vector<std::string> lines;
  const Logger log({.level = LogLevel::kInfo, .prefix = "rank 1", .color = false},
                   [&](const std::string& line) { lines.push_back(line); });
  log.debug("not this");
  log.info("step ", 3);
  log.warning("slow");
  EXPECT_EQ(lines, (std::vector<std::string>{"[rank 1] step 3", "[rank 1] warning: slow"}));
}

TEST(Logger, ALineIsOne) {
  std::string line;
  Logger({.level = LogLevel::kInfo, .prefix = "", .color = false}, [&](const std::string& text) {
    line = text;
  }).warning("two\nlines \x1b[2J.jpg");
  EXPECT_EQ(line, "warning: two\\nlines \\x1b[2J.jpg");
}

TEST(Logger, UnderOurLauncherTheRankIsNamedByIt) {
  const auto line = [] {
    testing::internal::CaptureStderr();
    Logger::from_environment("rank 1").warning("slow");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(line(), "[rank 1] warning: slow\n");
  setenv(Logger::kNamed, "1", 1);
  EXPECT_EQ(line(), "warning: slow\n");
  unsetenv(Logger::kNamed);
}

TEST(Logger, ColoursWhenAsked) {
  std::string line;
  Logger({.level = LogLevel::kInfo, .prefix = "", .color = true}, [&](const std::string& text) {
    line = text;
  }).error("x");
  EXPECT_EQ(line, "\033[31merror: x\033[0m");
}

TEST(Logger, NoColorIsHonoured) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_color(2));
  unsetenv("NO_COLOR");
}

TEST(Logger, LevelsAreChecked) {
  EXPECT_EQ(parse_log_level("warning"), LogLevel::kWarning);
  EXPECT_THROW(parse_log_level("loud"), ConfigError);
}

}  // namespace
}  // namespace lockstep
