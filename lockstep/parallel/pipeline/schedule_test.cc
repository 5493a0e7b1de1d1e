#include "lockstep/parallel/pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

using testing::ElementsAre;

constexpr double kForward = 1, kBackward = 2;  // their times

struct Played {
  double seconds = 0;
  std::vector<int> most_held;  // micro-batches between their forward and their backward, by stage
};

// Plays a step: a forward waits for that of the stage before, a backward for that of the stage behind.
Played play(PipelineSchedule schedule, int stages, int micro_batches) {
  constexpr double kNot = -1;
  const auto count = static_cast<size_t>(stages);
  std::vector<std::vector<PipelineAction>> left(count);
  std::vector<std::array<std::vector<double>, 2>> done(count);  // by stage, forward or backward, micro-batch
  std::vector<double> now(count, 0);
  std::vector<int> held(count, 0);
  Played played{.seconds = 0, .most_held = std::vector<int>(count, 0)};
  for (size_t s = 0; s < count; ++s) {
    left[s] = actions_of(schedule, stages, static_cast<int>(s), micro_batches);
    std::ranges::reverse(left[s]);
    for (auto& each : done[s]) each.assign(static_cast<size_t>(micro_batches), kNot);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < count; ++s) {
      while (!left[s].empty()) {
        const PipelineAction action = left[s].back();
        const auto micro = static_cast<size_t>(action.micro_batch);
        double ready = 0;
        if (!action.backward && s > 0) ready = done[s - 1][0][micro];
        if (action.backward) ready = s + 1 < count ? done[s + 1][1][micro] : done[s][0][micro];
        if (ready == kNot) break;
        left[s].pop_back();
        moved = true;
        now[s] = std::max(now[s], ready) + (action.backward ? kBackward : kForward);
        done[s][action.backward ? 1 : 0][micro] = now[s];
        held[s] += action.backward ? -1 : 1;
        played.most_held[s] = std::max(played.most_held[s], held[s]);
      }
    }
  }
  for (const auto& each : left) EXPECT_TRUE(each.empty()) << "stages wait for each other";
  played.seconds = std::ranges::max(now);
  return played;
}

TEST(PipelineSchedule, OneForwardOneBackward) {
  using Actions = std::vector<PipelineAction>;
  EXPECT_EQ(actions_of(PipelineSchedule::k1F1B, 2, 0, 3),
            (Actions{{false, 0}, {false, 1}, {true, 0}, {false, 2}, {true, 1}, {true, 2}}));
  EXPECT_EQ(actions_of(PipelineSchedule::k1F1B, 2, 1, 2), (Actions{{false, 0}, {true, 0}, {false, 1}, {true, 1}}));
  EXPECT_EQ(actions_of(PipelineSchedule::kGPipe, 2, 1, 2), (Actions{{false, 0}, {false, 1}, {true, 0}, {true, 1}}));
}

TEST(PipelineSchedule, TheBubbleIsThatOfTheory) {
  for (const auto schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        const Played played = play(schedule, stages, micro_batches);
        EXPECT_EQ(played.seconds, (micro_batches + stages - 1) * (kForward + kBackward));
        for (int s = 0; s < stages; ++s) {
          const int most = schedule == PipelineSchedule::kGPipe ? micro_batches : std::min(micro_batches, stages - s);
          EXPECT_EQ(played.most_held[static_cast<size_t>(s)], most) << "stage " << s << " of " << stages;
        }
      }
    }
  }
}

TEST(PipelineSchedule, MistakesAreNamed) {
  EXPECT_THROW(actions_of(PipelineSchedule::k1F1B, 2, 2, 1), ConfigError);
  EXPECT_THROW(actions_of(PipelineSchedule::k1F1B, 2, 0, 0), ConfigError);
  EXPECT_THROW(partition(std::array{1.0, 1.0}, 3), ConfigError);
}

TEST(PipelineSchedule, PartitionsHaveTheLeastLargestStage) {
  EXPECT_THAT(partition(std::array{1.0, 1.0, 1.0, 1.0}, 2), ElementsAre(0, 2));
  EXPECT_THAT(partition(std::array{1.0, 1.0, 1.0, 9.0}, 2), ElementsAre(0, 3));
  EXPECT_THAT(partition(std::array{9.0, 1.0, 1.0, 1.0}, 2), ElementsAre(0, 1));
  EXPECT_THAT(partition(std::array{3.0, 3.0, 3.0, 4.0, 4.0}, 3), ElementsAre(0, 2, 4));
  EXPECT_THAT(partition(std::array{4.0, 4.0, 0.0, 0.0, 9.0, 0.0, 1.0}, 4), ElementsAre(0, 1, 4, 6)) << "none is empty";
  EXPECT_THAT(partition(std::array{0.0, 0.0, 0.0}, 3), ElementsAre(0, 1, 2)) << "each gets one";
  EXPECT_THAT(partition(std::array{5.0, 2.0}, 1), ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::parallel
