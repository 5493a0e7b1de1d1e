// Rank 0 saves to a slow disk, for longer than the timeout, while the others wait for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/testing/long_test.h"
#include "program.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

class SlowDisk : public ::testing::TestWithParam<const char*> {};

TEST_P(SlowDisk, ASaveThatTakesLongerThanTheTimeoutIsWaitedFor) {
  LOCKSTEP_LONG_TEST_IF(GetParam() == std::string("gloo"));
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer comes before every library";
#endif
  constexpr double kTimeout = 6;
  const TempDir dir;
  std::filesystem::create_directory(dir / "slow_disk");
  const std::string run = dir / "slow_disk/run";
  Program::Options options =
      lockstep_command(train_words({"--backend", GetParam(), "--nproc", "2", "--steps", "2", "--save-every", "1",
                                    "--background-saves", "off", "--timeout", "6", "--out", run}));
  const std::string library = bin_folder() + "/failing_disk.so";
  ASSERT_TRUE(std::filesystem::exists(library));
  const Words preload = {"/usr/bin/env", "LD_PRELOAD=" + library};
  options.command.insert(options.command.begin(), preload.begin(), preload.end());
  const Result result = Program(options).wait(std::chrono::seconds(240));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 0")) << "nobody waited long";
  EXPECT_THAT(result.err, HasSubstr("saving"));
  EXPECT_GT(result.seconds, 2 * 1.5 * kTimeout) << "the disk was not slow";
  EXPECT_EQ(steps_logged(run), first_steps(2));
}

INSTANTIATE_TEST_SUITE_P(Backends, SlowDisk, ::testing::Values("gloo", "shm"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace lockstep::e2e
