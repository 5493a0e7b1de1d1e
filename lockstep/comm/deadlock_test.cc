#include "lockstep/comm/deadlock.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

WaitingRank sends(int rank, int to, int tag = 0) {
  return {.rank = rank,
          .wait = 5,
          .kind = OpKind::kSend,
          .peer = to,
          .tag = tag,
          .what = cat("send to rank ", to, " (tag ", tag, ")"),
          .waits_for = {to}};
}

WaitingRank receives(int rank, int from, int tag = 0) {
  return {.rank = rank,
          .wait = 5,
          .kind = OpKind::kReceive,
          .peer = from,
          .tag = tag,
          .what = cat("receive from rank ", from, " (tag ", tag, ")"),
          .waits_for = {from}};
}

WaitingRank calls_in(int rank, const std::string& group, std::vector<int> waits_for) {
  return {.rank = rank,
          .wait = 5,
          .kind = OpKind::kAllReduce,
          .what = "all_reduce #0 [4] Float sum of " + group,
          .waits_for = std::move(waits_for)};
}

std::vector<int> ranks_of(const std::vector<WaitingRank>& circle) {
  std::vector<int> ranks;
  for (const auto& each : circle) ranks.push_back(each.rank);
  return ranks;
}

TEST(FindCircle, FindsWhoWaitsForEachOther) {
  const std::vector<WaitingRank> ring = {sends(0, 1), sends(1, 2), sends(2, 0), sends(3, 1)};
  EXPECT_EQ(ranks_of(find_circle(ring, 2)), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(ranks_of(find_circle(ring, 3)), (std::vector<int>{0, 1, 2})) << "it waits for the circle";
  EXPECT_EQ(ranks_of(find_circle({sends(0, 0)}, 0)), (std::vector<int>{0})) << "a rank that sends to itself";
}

TEST(FindCircle, ARankThatIsNotWaitingMayStillCome) {
  EXPECT_TRUE(find_circle({sends(0, 1), sends(2, 0)}, 2).empty());
  EXPECT_TRUE(find_circle({calls_in(0, "the world", {1, 2}), calls_in(1, "the world", {2})}, 0).empty());
  EXPECT_TRUE(find_circle({}, 0).empty());
}

TEST(CircleText, NamesWhoWaitsForWhatAndTheRemedy) {
  EXPECT_EQ(
      circle_text({sends(0, 1), sends(1, 0)}),
      "rank 0 waits in send to rank 1 (tag 0), rank 1 in send to rank 0 (tag 0): a send ends when it is received, "
      "and each of these ranks would receive after its send; use isend, receive, and then wait for the send");
  EXPECT_EQ(circle_text({sends(0, 1, 3), receives(1, 0, 4)}),
            "rank 0 waits in send to rank 1 (tag 3), rank 1 in receive from rank 0 (tag 4): only a send and a receive "
            "of one tag match");
  EXPECT_EQ(circle_text({receives(0, 1), receives(1, 0)}),
            "rank 0 waits in receive from rank 1 (tag 0), rank 1 in receive from rank 0 (tag 0): none of them has sent "
            "yet; send with isend before receiving");
  EXPECT_EQ(
      circle_text({calls_in(0, "the group of ranks 0-1", {1}), calls_in(1, "the world", {0})}),
      "rank 0 waits in all_reduce #0 [4] Float sum of the group of ranks 0-1, rank 1 in all_reduce #0 [4] Float sum "
      "of the world: every rank must make the same calls in the same order, and each of them in the same group of "
      "ranks");
}

TEST(CircleText, ALargeCircleIsCutShort) {
  std::vector<WaitingRank> ring;
  for (int rank = 0; rank < 64; ++rank) ring.push_back(sends(rank, (rank + 1) % 64));
  const std::string text = circle_text(find_circle(ring, 9));
  EXPECT_NE(text.find("rank 3 in send to rank 4 (tag 0) and 60 more in the same way: "), std::string::npos) << text;
  EXPECT_LT(text.size(), 512u) << "what the ranks of a node can tell each other";
}

TEST(CircleCheck, OnlyAWaitThatLastsCounts) {
  std::vector<WaitingRank> circle = {sends(0, 1), sends(1, 0)};
  const auto later = [&circle](uint64_t beats) {
    for (auto& rank : circle) rank.beats += beats;
    return circle;
  };
  CircleCheck check;
  EXPECT_FALSE(check.confirms(circle));
  EXPECT_FALSE(check.confirms(circle)) << "nobody has looked again";
  EXPECT_FALSE(check.confirms(later(1)));
  EXPECT_FALSE(check.confirms(later(1)));
  circle[1].wait = 6;
  EXPECT_FALSE(check.confirms(later(2))) << "another wait: all over again";
  EXPECT_FALSE(check.confirms(later(2)));
  EXPECT_FALSE(check.confirms({}));
  EXPECT_FALSE(check.confirms(circle));
  EXPECT_FALSE(check.confirms(later(2)));
  EXPECT_TRUE(check.confirms(later(2)));
}

}  // namespace
}  // namespace lockstep::comm
