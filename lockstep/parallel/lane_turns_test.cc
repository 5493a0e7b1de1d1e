#include "lockstep/parallel/lane_turns.h"

#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

using testing::HasSubstr;

void no_switch(size_t, size_t) {}

TEST(LaneTurns, LanesRunInOrderBetweenExchanges) {
  LaneTurns turns;
  for (int run = 0; run < 3; ++run) {  // on the same threads
    std::string story;
    turns.run(
        3,
        [&](size_t lane) {
          for (int part = 0; part < 3; ++part) {
            EXPECT_EQ(turns.current(), lane);
            story += static_cast<char>('0' + lane);
            if (part < 2) turns.meet([&] { story += '|'; });
          }
        },
        no_switch);
    EXPECT_EQ(story, "012|012|012");
  }
}

TEST(LaneTurns, ASingleLaneRunsHere) {
  LaneTurns turns;
  const auto self = std::this_thread::get_id();
  int met = 0;
  turns.run(
      1,
      [&](size_t) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        turns.meet([&] { ++met; });
      },
      no_switch);
  EXPECT_EQ(met, 1);
}

TEST(LaneTurns, ThreadsHaveTheCallersSettings) {
  LaneTurns turns;
  const c10::AutoGradMode no_grad(false);
  turns.run(
      2, [](size_t) { EXPECT_FALSE(c10::GradMode::is_enabled()); }, no_switch);
}

TEST(LaneTurns, SwitchesAreTold) {
  LaneTurns turns;
  std::string story;
  const auto name = [](size_t lane) { return lane == LaneTurns::kNone ? std::string("-") : std::to_string(lane); };
  turns.run(
      2, [&](size_t) { turns.meet([] {}); }, [&](size_t from, size_t to) { story += name(from) + name(to) + ' '; });
  EXPECT_EQ(story, "-0 01 10 01 1- ");
}

std::string error_of(LaneTurns& turns, size_t lanes, const std::function<void(size_t)>& lane) {
  try {
    turns.run(lanes, lane, no_switch);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(LaneTurns, AnErrorInOneEndsAll) {
  for (const size_t failing : {0, 1, 2}) {
    for (const int exchanges : {0, 1, 2}) {
      LaneTurns turns;
      const auto lane = [&](size_t i) {
        for (int k = 0; k < 3; ++k) {
          if (i == failing && k == exchanges) throw DataError("lane ", i, ": damaged");
          turns.meet([] {});
        }
      };
      EXPECT_EQ(error_of(turns, 3, lane), cat("lane ", failing, ": damaged"));
      EXPECT_EQ(error_of(turns, 3, [&](size_t) { turns.meet([] {}); }), "no error") << "usable afterwards";
    }
  }
}

TEST(LaneTurns, AnErrorInTheExchangeEndsAll) {
  LaneTurns turns;
  EXPECT_EQ(error_of(turns, 3, [&](size_t) { turns.meet([] { throw DataError("no"); }); }), "no");
}

TEST(LaneTurns, AnErrorOfTheCallersEndsAll) {
  for (const size_t lanes : {1, 3}) {
    LaneTurns turns;
    const auto fails = [](size_t, size_t to) {
      if (to == LaneTurns::kNone) throw DataError("no room");
    };
    try {
      turns.run(
          lanes, [&](size_t) { turns.meet([] {}); }, fails);
      ADD_FAILURE() << "no error";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "no room");
    }
    EXPECT_EQ(error_of(turns, lanes, [&](size_t) { turns.meet([] {}); }), "no error") << "usable afterwards";
  }
}

TEST(LaneTurns, LanesThatMeetLessOftenAreNoticed) {
  for (const size_t short_lane : {0, 1, 2}) {
    LaneTurns turns;
    const auto lane = [&](size_t i) {
      for (int k = 0; k < (i == short_lane ? 1 : 2); ++k) turns.meet([] {});
    };
    EXPECT_THAT(error_of(turns, 3, lane), HasSubstr("do not use the same SyncBatchNorm layers"));
  }
}

}  // namespace
}  // namespace lockstep::parallel
