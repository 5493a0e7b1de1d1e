#include "lockstep/comm/network/watched_call.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

TEST(WatchedCall, ACollectiveWaitsForItsGroup) {
  WatchedCall call{.group = {"world.0:4,2", {4, 2}}, .number = 3, .label = "barrier"};
  call.signature = signature_of(calls::barrier());
  EXPECT_EQ(call.text(), "barrier, call #2");
  EXPECT_EQ(call.own_channel(), "world.0:4,2");
  const BlockedCall blocked = blocked_call(7, call, {}, /*size=*/8);
  EXPECT_EQ(blocked.what, "barrier #2 of the group of ranks 2, 4");
  EXPECT_EQ(blocked.needs, "world.0:4,2");
  EXPECT_EQ(blocked.number, 3u);
  EXPECT_EQ(blocked.ranks, (std::vector<int>{4, 2}));
  EXPECT_EQ(blocked_call(7, call, {}, /*size=*/2).what, "barrier #2 of the world");
}

TEST(WatchedCall, AMessageWaitsForItsPeer) {
  const WatchedCall call{
      .number = 3, .label = "send to rank 1 (tag 5)", .expects = {1}, .tag = 5, .channel = "mine", .needs = "theirs"};
  EXPECT_EQ(call.text(), "send to rank 1 (tag 5)");
  EXPECT_EQ(call.own_channel(), "mine");
  const BlockedCall blocked = blocked_call(7, call, {}, 8);
  EXPECT_EQ(blocked.what, "send to rank 1 (tag 5)");
  EXPECT_EQ(blocked.needs, "theirs");
  EXPECT_EQ(blocked.peer, 1);
  EXPECT_EQ(blocked.tag, 5);
}

TEST(WatchedCall, IsComparedWithWhatTheOthersCalled) {
  WatchedCall call{.group = {"world.0:4,2,0", {4, 2, 0}}, .number = 3, .label = "barrier"};
  call.signature = signature_of(calls::barrier());
  std::vector<History> posts(3);
  posts[1].add({3, call.signature});
  const Comparison waits = compare(call, /*self=*/2, posts);
  EXPECT_EQ(waits.missing, (std::vector<int>{0, 4}));
  EXPECT_FALSE(waits.differs);
  posts[0].add({3, signature_of(calls::all_reduce(at::Tensor()))});
  posts[2].add({4, call.signature});  // it is further, and its call 3 is not known
  const Comparison differs = compare(call, 2, posts);
  EXPECT_TRUE(differs.missing.empty());
  EXPECT_TRUE(differs.differs);
  ASSERT_EQ(differs.called.size(), 5u);
  EXPECT_TRUE(differs.called[2] && differs.called[4]);
  EXPECT_FALSE(differs.called[0] || differs.called[1] || differs.called[3]);
}

}  // namespace
}  // namespace lockstep::comm
