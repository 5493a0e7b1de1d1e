#include "lockstep/comm/network/blocked_call.h"

#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::comm {
namespace {

TEST(BegunCalls, WhatWasNotUsedForLongIsUnknown) {
  BegunCalls begun;
  begun.add("world", 3);
  EXPECT_TRUE(begun.may_have("world", 3));
  EXPECT_FALSE(begun.may_have("world", 4));
  EXPECT_FALSE(begun.may_have("world/send/0/1/0", 1));
  for (int tag = 0; tag < 300; ++tag) {
    begun.add(cat("world/send/0/1/", tag), 1);
    begun.add("world", static_cast<uint64_t>(4 + tag));
  }
  for (const BegunCalls& each : {begun, BegunCalls::decode(begun.encode())}) {
    EXPECT_TRUE(each.may_have("world", 303));
    EXPECT_FALSE(each.may_have("world", 304)) << "a channel in use is not forgotten";
    EXPECT_FALSE(each.may_have("world/send/0/1/299", 2));
    EXPECT_TRUE(each.may_have("world/send/0/1/0", 2)) << "forgotten: it may have been";
  }
}

BlockedCall send(int from, int to) {
  BlockedCall call{.wait = 9,
                   .kind = OpKind::kSend,
                   .peer = to,
                   .tag = 0,
                   .what = cat("send to rank ", to, " (tag 0)"),
                   .needs = cat("world/receive/", from, '/', to, "/0"),
                   .number = 2,
                   .ranks = {to}};
  call.begun.add("world", 5);
  call.begun.add(cat("world/send/", from, '/', to, "/0"), 2);
  return call;
}

TEST(BlockedCall, IsReadAsItWasWritten) {
  const auto read = BlockedCall::decode(send(0, 1).encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->encode(), send(0, 1).encode());
  EXPECT_EQ(read->what, "send to rank 1 (tag 0)");
  EXPECT_EQ(read->ranks, std::vector<int>{1});
  EXPECT_FALSE(BlockedCall::decode("rubbish"));
  EXPECT_FALSE(BlockedCall::decode(""));
}

TEST(WaitingRanks, ARankThatHasBegunItsPartIsNotWaitedFor) {
  std::map<int, BlockedCall> calls = {{0, send(0, 1)}, {1, send(1, 0)}};
  const std::map<int, uint64_t> beats = {{0, 7}, {1, 8}};
  const auto waiting = waiting_ranks(calls, beats);
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].waits_for, std::vector<int>{1});
  EXPECT_EQ(waiting[1].waits_for, std::vector<int>{0});
  EXPECT_EQ(waiting[1].beats, 8u);
  calls[1].begun.add("world/receive/0/1/0", 2);
  EXPECT_TRUE(waiting_ranks(calls, beats)[0].waits_for.empty()) << "the data may be on its way";
  calls.erase(0);
  EXPECT_TRUE(waiting_ranks(calls, beats)[0].waits_for.empty()) << "rank 0 is not in a wait";
}

}  // namespace
}  // namespace lockstep::comm
