#include "lockstep/launch/watch/straggler_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace lockstep::launch {
namespace {

constexpr int64_t kMs = 1'000'000;

// Ranks whose steps take as long as the slowest of them; each waits for the rest of it. A look every 100 steps.
struct Ranks {
  explicit Ranks(std::vector<int64_t> own_ms) : own_ms_(std::move(own_ms)), ranks(own_ms_.size()) {
    for (RankSample& rank : ranks) rank.running = true, rank.step = 1;
  }
  std::optional<StragglerWatch::Straggler> look() {
    const int64_t step_ms = *std::max_element(own_ms_.begin(), own_ms_.end());
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].step += 100;
      ranks[i].reduce_wait_ns += 100 * (step_ms - own_ms_[i]) * kMs;
      ranks[i].data_wait_ns += 100 * own_ms_[i] * kMs / 2;
    }
    now_ns += 100 * step_ms * kMs;
    return watch.look(ranks, now_ns);
  }
  std::optional<StragglerWatch::Straggler> look_often() {
    for (int i = 0; i < 40; ++i) {
      if (const auto found = look()) return found;
    }
    return std::nullopt;
  }
  std::vector<int64_t> own_ms_;
  std::vector<RankSample> ranks;
  StragglerWatch watch;
  int64_t now_ns = kMs;
};

TEST(StragglerWatch, NamesTheRankThatTheOthersWaitFor) {
  Ranks of({10, 11, 30, 10});
  const auto found = of.look_often();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_NEAR(found->step_s, 0.030, 1e-6);
  EXPECT_NEAR(found->others_s, 0.010, 1e-6);
  EXPECT_NEAR(found->data_share, 0.5, 1e-6);
  EXPECT_NEAR(found->wait_share, 0, 1e-6);
}

TEST(StragglerWatch, SaysSoOnceUntilTheRankKeepsUpAgain) {
  Ranks of({10, 30});
  EXPECT_TRUE(of.look_often());
  EXPECT_FALSE(of.look_often());
  of.own_ms_ = {10, 10};
  EXPECT_FALSE(of.look_often());
  of.own_ms_ = {10, 30};
  EXPECT_TRUE(of.look_often());
}

TEST(StragglerWatch, EvenRanksAndOneAloneAreNone) {
  EXPECT_FALSE(Ranks({10, 14, 11, 10}).look_often());
  EXPECT_FALSE(Ranks({10}).look_often());
}

TEST(StragglerWatch, OneSlowWindowIsNone) {
  Ranks of({10, 30});
  while (of.now_ns < StragglerWatch::kWindowNs + 3000 * kMs) EXPECT_FALSE(of.look());  // one window, and a bit
  of.own_ms_ = {10, 10};
  EXPECT_FALSE(of.look_often());
}

}  // namespace
}  // namespace lockstep::launch
