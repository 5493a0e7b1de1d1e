#include "lockstep/comm/network/bulletin.h"

#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace lockstep::comm {
namespace {

TEST(Bulletin, CarriesBeatsPostsAndTheFirstReasonToGiveUp) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  Bulletin first(store, 0), second(store, 1);
  const WatchGroup group{"pair", {1, 0}};
  for (Bulletin* each : {&first, &second}) {
    each->announce();
    each->announce(group);
  }
  EXPECT_TRUE(first.beats({}).empty());
  second.beat("alive");
  EXPECT_EQ(first.beats({1, 0}), (std::vector<std::string>{"alive", "0"}));

  second.post(group, {12, signature_of(calls::barrier())});
  const auto posts = first.posts(group);
  ASSERT_EQ(posts.size(), 2u);
  EXPECT_EQ(posts[0].number, 12u);
  EXPECT_EQ(posts[0].signature, signature_of(calls::barrier()));
  EXPECT_EQ(posts[1].number, 0u);

  EXPECT_FALSE(first.given_up());
  second.give_up("disk full");
  first.give_up("nothing to do");
  EXPECT_EQ(first.given_up(), "disk full");
}

}  // namespace
}  // namespace lockstep::comm
