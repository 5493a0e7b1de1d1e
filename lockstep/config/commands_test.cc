#include "lockstep/config/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::config {
namespace {

template <typename Options>
std::vector<std::string> names(const OptionTable<Options>& table) {
  std::vector<std::string> out;
  for (const auto& row : table) out.push_back(row.name);
  return out;
}

TEST(Commands, EachBenchHasItsOwnOptions) {
  EXPECT_THAT(names(bench_table(BenchKind::kStep)),
              testing::UnorderedElementsAre("model", "size", "batch-size", "dtype", "channels-last", "optimizer",
                                            "nproc", "threads", "no-comm", "overhead", "amp", "json"));
  EXPECT_THAT(names(bench_table(BenchKind::kAllreduce)),
              testing::UnorderedElementsAre("backend", "sizes", "algorithm", "comm-dtype", "interface", "nproc",
                                            "timeout", "json"));
  EXPECT_THAT(names(bench_table(BenchKind::kStartup)), testing::UnorderedElementsAre("nproc", "json"));
  EXPECT_THAT(names(bench_table(BenchKind::kPrecision)), testing::UnorderedElementsAre("json"));
  EXPECT_THAT(names(bench_table(BenchKind::kData)),
              testing::UnorderedElementsAre("threads", "size", "batch-size", "json"));
}

TEST(Commands, OthersNameTheirs) {
  EXPECT_THAT(names(eval_table()), testing::UnorderedElementsAre("load", "data", "arch", "size", "batch-size", "nproc",
                                                                 "threads", "amp", "json"));
  EXPECT_THAT(names(inspect_table()), testing::ElementsAre("json"));
  EXPECT_THAT(names(launch_table()), testing::UnorderedElementsAre("nproc", "threads", "log-dir"));
  EXPECT_THAT(names(doctor_table()), testing::ElementsAre("json"));
}

TEST(Commands, SizesHaveBinaryPrefixes) {
  EXPECT_THAT(read_sizes("sizes", "4096"), testing::ElementsAre(4096));
  EXPECT_THAT(read_sizes("sizes", "1K,1M,100M,64G"),
              testing::ElementsAre(1 << 10, 1 << 20, 100 << 20, int64_t{1} << 36));
  EXPECT_EQ(write_sizes(read_sizes("sizes", "4,1K")), "4,1024");
  for (const char* bad : {"", "K", "1k", "1KB", "-4", "0", "3", "65G", "1K,", "99999999999999999999"}) {
    EXPECT_THROW(read_sizes("sizes", bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace lockstep::config
