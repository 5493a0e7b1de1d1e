#include "lockstep/track/progress.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(Progress, ALossThatIsNoNumberHasNoSign) {
  ProgressState state = kState;
  state.loss = -std::nan("");
  EXPECT_NE(progress_text(state).find("  loss nan  "), std::string::npos) << progress_text(state);
}

TEST(Progress, LongRunsHaveHours) {
  ProgressState state = kState;
  state.seconds_left = 3 * 3600 + 4 * 60 + 5;
  EXPECT_NE(progress_text(state).find("ETA 3:04:05"), std::string::npos);
}

TEST(Progress, TheTimeLeftMayNotBeKnownYet) {
  ProgressState state = kState;
  state.seconds_left.reset();
  EXPECT_NE(progress_text(state).find("ETA -:--"), std::string::npos);
}

TEST(Progress, TheBarFitsItsColumns) {
  const std::string bar = progress_bar(kState, 110);
  EXPECT_EQ(bar.substr(0, 32), "[#######.......................]");
  for (const int columns : {1, 20, 40, 70, 80, 81, 90, 200}) {
    EXPECT_LT(progress_bar(kState, columns).size(), static_cast<size_t>(columns)) << columns;
  }
}

TEST(Progress, FieldsGoFromTheMiddleWhereRoomIsShort) {
  EXPECT_EQ(progress_bar(kState, 80),
            "[###...........] epoch 2/5  step 140/560  loss 0.2301  5210 samples/s  ETA 1:12");
  EXPECT_EQ(progress_bar(kState, 60), "[##........] epoch 2/5  step 140/560  loss 0.2301  ETA 1:12");
  EXPECT_EQ(progress_bar(kState, 50), "epoch 2/5  step 140/560  loss 0.2301  ETA 1:12");
  EXPECT_EQ(progress_bar(kState, 40), "step 140/560  loss 0.2301  ETA 1:12");
  ProgressState longest = kState;
  longest.step = longest.steps = 1'000'000'000;
  longest.seconds_left = 100 * 3600;
  EXPECT_EQ(progress_bar(longest, 40), "ETA 100:00:00") << "never more than a line";
}

TEST(Progress, PlainLinesOffATerminal) {
  std::string out;
  Progress progress({.terminal = false, .seconds_between = 0}, [&](const std::string& text) { out += text; });
  progress.update(kState);
  progress.line("saved");
  progress.finish();
  EXPECT_EQ(out, progress_text(kState) + "\nsaved\n") << "the last line is not said twice";
}

TEST(Progress, ATerminalIsRedrawn) {
  std::string out;
  Progress progress({.terminal = true, .columns = [] { return 120; }}, [&](const std::string& text) { out += text; });
  progress.update(kState);
  progress.line("saved");
  EXPECT_EQ(out, "\r\033[K" + progress_bar(kState, 120) + "\r\033[Ksaved\n");
  progress.finish();
  EXPECT_TRUE(out.ends_with("saved\n\r\033[K" + progress_bar(kState, 120) + "\n"));
}

TEST(Progress, TheBarFollowsTheTerminalsSize) {
  std::string out;
  int columns = 120;
  Progress progress({.terminal = true, .columns = [&] { return columns; }},
                    [&](const std::string& text) { out = text; });
  progress.update(kState);
  columns = 50;
  progress.line("x");  // the bar of 107 characters lies on three lines of 50
  EXPECT_EQ(out, "\r\033[2A\033[Jx\n");
}

TEST(Progress, QuietOnesStillPassLinesOn) {
  std::string out;
  Progress progress({.terminal = true, .quiet = true}, [&](const std::string& text) { out += text; });
  progress.update(kState);
  progress.line("the end");
  progress.finish();
  EXPECT_EQ(out, "the end\n");
}

}  // namespace
}  // namespace lockstep::track
