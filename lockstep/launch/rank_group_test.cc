#include "lockstep/launch/rank_group.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/launch/testing/alive.h"

namespace lockstep::launch {
namespace {

class RankGroupTest : public testing::Test {
 protected:
  RankGroupTest() {
    std::string folder = testing::TempDir() + "/group-XXXXXX";
    path_ = std::string(mkdtemp(folder.data())) + "/out";
    out_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    terminal_.emplace(out_.get(), out_.get());
    group_.emplace(*terminal_);
  }
  void start(int rank, const std::string& script) {
    group_->start(rank, {.command = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .inherited = {}},
                  {.prefix = cat(rank, ": ")});
  }
  // Waits until all ranks have ended, and returns them in the order of their ends.
  std::vector<int> run() {
    std::vector<int> order;
    for (const Stopwatch watch; !group_->all_ended() && watch.seconds() < 20;) {
      group_->wait(-1, 1000, [&](RankProcess& process) { order.push_back(process.rank); });
    }
    return order;
  }
  std::string output() {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  std::string path_;
  Descriptor out_;
  std::optional<Terminal> terminal_;
  std::optional<RankGroup> group_;
};

TEST_F(RankGroupTest, RecordsEndsAndPassesOutputOn) {
  start(0, "echo zero; sleep 0.2; printf end; exit 3");
  start(1, "echo one");
  EXPECT_THAT(run(), testing::ElementsAre(1, 0));
  group_->finish(100);
  EXPECT_THAT(output(), testing::AllOf(testing::HasSubstr("0: zero\n"), testing::HasSubstr("1: one\n"),
                                       testing::HasSubstr("0: end\n")));
  EXPECT_EQ(group_->ranks()[0]->status->code, 3);
  EXPECT_TRUE(group_->ranks()[1]->status->ok());
}

TEST_F(RankGroupTest, NothingIsLostOfALotOfOutput) {
  start(0, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
  run();
  group_->finish(1000);
  EXPECT_THAT(output(), testing::EndsWith("0: line 19999\n"));
  const std::string all = output();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 20000);
}

TEST_F(RankGroupTest, WhatARankLeavesBehindIsKilled) {
  start(0, "sleep 100 & echo $!");
  run();
  const Stopwatch watch;
  group_->finish(50);
  EXPECT_LT(watch.seconds(), 2);
  const int left_behind = std::stoi(output().substr(3));
  EXPECT_TRUE(gone_within({left_behind}, 1));
}

TEST_F(RankGroupTest, WhatARankLeavesBehindInAnotherSessionIsKilled) {
  start(0, "setsid sh -c 'echo $$; exec yes' & sleep 0.2");  // which holds standard output, and fills it
  run();
  const Stopwatch watch;
  group_->finish(50);
  EXPECT_LT(watch.seconds(), 4);
  const int left_behind = std::stoi(output().substr(3));
  EXPECT_TRUE(gone_within({left_behind}, 0.5));
}

TEST_F(RankGroupTest, WhatARankLeavesBehindMayFinishItsWords) {
  start(0, "(sleep 0.1; echo late) &");
  run();
  group_->finish(5000);
  EXPECT_EQ(output(), "0: late\n");
}

TEST_F(RankGroupTest, OtherDescriptorsWakeIt) {
  start(0, "sleep 100");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor reader(ends[0]), writer(ends[1]);
  EXPECT_FALSE(group_->wait(reader.get(), 10, [](RankProcess&) {}));
  write_all(writer.get(), "x");
  EXPECT_TRUE(group_->wait(reader.get(), 10000, [](RankProcess&) {}));
  group_->signal_running(SIGTERM);
  EXPECT_THAT(run(), testing::ElementsAre(0));
  EXPECT_EQ(group_->ranks()[0]->status->signal, SIGTERM);
}

TEST_F(RankGroupTest, ItsEndIsTheEndOfAll) {
  start(0, "echo $$; sleep 100");
  while (output().empty()) group_->wait(-1, 1000, [](RankProcess&) {});
  const int pid = std::stoi(output().substr(3));
  EXPECT_THROW(group_->start(1, {.command = {"/no/such"}, .environment = {}, .inherited = {}}, {}), ConfigError);
  group_.reset();
  EXPECT_FALSE(alive(pid));
}

}  // namespace
}  // namespace lockstep::launch
