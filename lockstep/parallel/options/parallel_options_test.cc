#include "lockstep/parallel/options/parallel_options.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace lockstep::parallel {
namespace {

constexpr int kRecipeLanes = 4;

// The options that the words set, resolved on this machine: ranks, lanes and threads.
std::array<int, 3> resolved(const std::vector<config::GivenOption>& given, const Machine& machine) {
  ParallelOptions options;
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(given);
  options.resolve(machine, kRecipeLanes);
  return {options.nproc, options.lanes, options.threads};
}

TEST(ParallelOptions, AutoIsOneRankACore) {
  EXPECT_EQ(resolved({{"nproc", "auto"}}, {.cores = 3}), (std::array{3, 0, 0}));
  EXPECT_EQ(resolved({{"nproc", "auto"}, {"lanes", "8"}}, {.cores = 3}), (std::array{2, 8, 0}));
  EXPECT_EQ(resolved({{"nproc", "auto"}, {"threads", "2"}}, {.cores = 8}), (std::array{4, 0, 2}));
  EXPECT_THROW(resolved({{"nproc", "3"}, {"lanes", "8"}}, {.cores = 3}), ConfigError);
}

TEST(ParallelOptions, WhatIsUnsaidHasTheSameLanesAndThreadsOnAnyMachine) {
  for (const auto& [cores, ranks] : {std::pair{1, 1}, {2, 2}, {3, 2}, {4, 4}, {64, 4}}) {
    EXPECT_EQ(resolved({}, {.cores = cores}), (std::array{ranks, kRecipeLanes, 1})) << cores << " cores";
  }
  EXPECT_EQ(resolved({{"threads", "2"}}, {.cores = 4}), (std::array{2, kRecipeLanes, 2}));
}

TEST(ParallelOptions, APipelinesRanksAreItsStages) {
  const config::GivenOption pipeline{"parallel", "pipeline"};
  EXPECT_EQ(resolved({pipeline}, {.cores = 8}), (std::array{2, kRecipeLanes, 1})) << "ddp's lanes";
  EXPECT_EQ(resolved({pipeline, {"stages", "3"}}, {.cores = 3}), (std::array{3, kRecipeLanes, 1}));
  EXPECT_EQ(resolved({pipeline, {"stages", "2"}, {"nproc", "4"}}, {.cores = 4}), (std::array{4, 0, 0}));
  EXPECT_EQ(resolved({pipeline, {"stages", "2"}, {"nproc", "auto"}}, {.cores = 7}), (std::array{6, 0, 0}));
  EXPECT_EQ(resolved({pipeline, {"stages", "3"}, {"nproc", "auto"}}, {.cores = 200}), (std::array{63, 0, 0}));
  EXPECT_EQ(resolved({pipeline, {"nproc", "auto"}}, {.cores = 200}), (std::array{2, 0, 0}));
  EXPECT_EQ(resolved({pipeline, {"nproc", "3"}, {"lanes", "5"}}, {.cores = 3}), (std::array{3, 5, 0}));
  EXPECT_THROW(resolved({pipeline, {"stages", "2"}, {"nproc", "4"}, {"lanes", "3"}}, {.cores = 4}), ConfigError);
  EXPECT_EQ(resolved({{"parallel", "dp"}}, {.cores = 4}), (std::array{1, kRecipeLanes, 1}));
  ParallelOptions options;
  options.form = ParallelForm::kPipeline;
  options.stages = 2;
  options.lanes = 8;
  options.min_nproc = 2;
  EXPECT_EQ(options.fewer_than(8), 4);
  EXPECT_EQ(options.fewer_than(4), 2);
  EXPECT_EQ(options.fewer_than(2), 0);
}

TEST(ParallelOptions, ServersAreAmongTheRanks) {
  const config::GivenOption ps{"parallel", "ps"};
  EXPECT_EQ(resolved({ps}, {.cores = 2}), (std::array{2, kRecipeLanes, 1})) << "ddp's ranks and lanes";
  EXPECT_EQ(resolved({ps, {"servers", "3"}, {"nproc", "4"}}, {.cores = 1}), (std::array{4, 0, 0}));
  EXPECT_EQ(resolved({ps, {"servers", "3"}}, {.cores = 2}), (std::array{4, kRecipeLanes, 1})) << "lanes fit no three";
  EXPECT_EQ(resolved({ps, {"servers", "3"}, {"nproc", "auto"}}, {.cores = 2}), (std::array{3, 0, 0}));
  EXPECT_THROW(resolved({ps, {"servers", "3"}, {"nproc", "2"}}, {.cores = 2}), ConfigError);
  EXPECT_THROW(resolved({ps, {"servers", "60"}, {"lanes", "200"}}, {.cores = 2}), ConfigError) << "100 processes";
  ParallelOptions options;
  options.form = ParallelForm::kPs;
  options.servers = 2;
  options.lanes = 8;
  options.min_nproc = 1;
  EXPECT_EQ(options.fewer_than(8), 4);
  EXPECT_EQ(options.fewer_than(4), 2);
  EXPECT_EQ(options.fewer_than(2), 0) << "two servers are on two ranks";
}

TEST(ParallelOptions, ARangeOfRanksKeepsTheLanesOfTheMost) {
  ParallelOptions options;
  config::OptionSet rows;
  options.declare(rows);
  rows.apply(std::vector<config::GivenOption>{{"nproc", "2:8"}});
  options.resolve({.cores = 1}, kRecipeLanes);
  EXPECT_EQ(options.nproc, 8);
  EXPECT_EQ(options.lanes, 8);
  EXPECT_EQ(rows.find("nproc")->get(), "2:8");
  EXPECT_EQ(options.fewer_than(8), 4) << "each rank has a power of two of the lanes";
  EXPECT_EQ(options.fewer_than(4), 2);
  EXPECT_EQ(options.fewer_than(2), 0);
  rows.reset();
  EXPECT_EQ(options.min_nproc, 0);
  rows.apply(std::vector<config::GivenOption>{{"nproc", "4:4"}});
  EXPECT_EQ(rows.find("nproc")->get(), "4");
}

TEST(ParallelOptions, ARangeThatIsNoneIsRefused) {
  for (const char* text : {"4:2", "0:2", "2:", ":2", "1:2:3", "1:65", "auto:2"}) {
    ParallelOptions options;
    config::OptionSet rows;
    options.declare(rows);
    EXPECT_THROW(rows.apply(std::vector<config::GivenOption>{{"nproc", text}}), ConfigError) << text;
  }
}

TEST(ParallelOptions, EitherOfRanksAndLanesLeavesTheRecipesOut) {
  EXPECT_EQ(resolved({{"nproc", "3"}}, {.cores = 64}), (std::array{3, 0, 0}));
  EXPECT_EQ(resolved({{"lanes", "6"}}, {.cores = 4}), (std::array{3, 6, 0}));
}

TEST(ParallelOptions, RanksThatAreThereDecide) {
  EXPECT_EQ(resolved({}, {.cores = 8, .launched = true}), (std::array{1, 0, 0})) << "lanes will be the world size";
  EXPECT_EQ(resolved({{"nproc", "auto"}}, {.cores = 8, .launched = true}), (std::array{1, 0, 0}));
}

TEST(ParallelOptions, LanesFollowTheWorldSizeUnlessSaid) {
  ParallelOptions options;
  EXPECT_EQ(options.lanes_of(3), 3);
  options.lanes = 8;
  EXPECT_EQ(options.lanes_of(2), 8);
}

}  // namespace
}  // namespace lockstep::parallel
