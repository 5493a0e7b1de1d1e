#include "lockstep/track/progress.h"

#include <gtest/gtest.h>

namespace lockstep::track {
namespace {

const ProgressState kState = {.step = 140,
                              .steps = 560,
                              .epoch = 2,
                              .epochs = 5,
                              .loss = 0.23012,
                              .lr = 0.04381,
                              .samples_per_second = 5210.4,
                              .seconds_left = 72};

TEST(Progress, SaysAllThatMatters) {
  EXPECT_EQ(progress_text(kState), "epoch 2/5  step 140/560  loss 0.2301  lr 0.0438  5210 samples/s  ETA 1:12");
}

TEST(Progress, LongRunsHaveHours) {
  ProgressState state = kState;
  state.seconds_left = 3 * 3600 + 4 * 60 + 5;
  EXPECT_NE(progress_text(state).find("ETA 3:04:05"), std::string::npos);
}

TEST(Progress, TheBarFitsItsColumns) {
  const std::string bar = progress_bar(kState, 110);
  EXPECT_EQ(bar.substr(0, 32), "[#######.......................]");
  for (const int columns : {1, 20, 70, 80, 81, 90, 200}) {
    EXPECT_LT(progress_bar(kState, columns).size(), static_cast<size_t>(columns)) << columns;
  }
}

TEST(Progress, PlainLinesOffATerminal) {
  std::string out;
  Progress progress({.terminal = false, .columns = 80, .seconds_between = 0},
                    [&](const std::string& text) { out += text; });
  progress.update(kState);
  progress.line("saved");
  EXPECT_EQ(out, progress_text(kState) + "\nsaved\n");
}

TEST(Progress, ATerminalIsRedrawn) {
  std::string out;
  Progress progress({.terminal = true, .columns = 120}, [&](const std::string& text) { out += text; });
  progress.update(kState);
  progress.line("saved");
  EXPECT_EQ(out, "\r\033[K" + progress_bar(kState, 120) + "\r\033[Ksaved\n");
}

}  // namespace
}  // namespace lockstep::track
