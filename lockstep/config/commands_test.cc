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
                                            "nproc", "threads", "no-comm", "amp", "json"));
  EXPECT_THAT(names(bench_table(BenchKind::kAllreduce)), testing::UnorderedElementsAre("nproc", "json"));
  EXPECT_THAT(names(bench_table(BenchKind::kStartup)), testing::UnorderedElementsAre("nproc", "json"));
  EXPECT_THAT(names(bench_table(BenchKind::kData)),
              testing::UnorderedElementsAre("threads", "size", "batch-size", "json"));
}

TEST(Commands, OthersNameTheirs) {
  EXPECT_THAT(names(eval_table()),
              testing::UnorderedElementsAre("load", "data", "batch-size", "nproc", "threads", "amp", "json"));
  EXPECT_THAT(names(inspect_table()), testing::ElementsAre("json"));
  EXPECT_THAT(names(launch_table()), testing::UnorderedElementsAre("nproc", "threads", "log-dir"));
}

}  // namespace
}  // namespace lockstep::config
