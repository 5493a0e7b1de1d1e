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
  EXPECT_TRUE(first.heartbeats({}).empty());
  second.heartbeat("alive");
  EXPECT_EQ(first.heartbeats({1, 0}), (std::vector<std::string>{"alive", "0"}));

  History history;
  for (uint64_t number = 1; number <= 12; ++number) history.add({number, signature_of(calls::barrier())});
  second.post(group.name, history);
  const auto posts = first.posts(group);
  ASSERT_EQ(posts.size(), 2u);
  EXPECT_EQ(posts[0].newest(), 12u);
  ASSERT_NE(posts[0].find(5), nullptr);
  EXPECT_EQ(posts[0].find(5)->signature, signature_of(calls::barrier()));
  EXPECT_EQ(posts[0].find(4), nullptr) << "too long ago";
  EXPECT_EQ(posts[1].newest(), 0u);
  EXPECT_EQ(posts[1].find(0), nullptr);

  EXPECT_FALSE(first.given_up());
  second.give_up({"disk full"});
  first.give_up({"nothing to do", /*desync=*/true});
  EXPECT_EQ(first.given_up(), (GivenUp{"disk full", /*desync=*/false}));
}

TEST(Bulletin, ADesyncIsToldFromOtherReasons) {
  Bulletin bulletin(c10::make_intrusive<c10d::HashStore>(), 0);
  bulletin.give_up({"ranks wait for each other", /*desync=*/true});
  EXPECT_EQ(bulletin.given_up(), (GivenUp{"ranks wait for each other", /*desync=*/true}));
}

TEST(Bulletin, CountsThoseWhoKnowOfADifference) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  Bulletin first(store, 0), second(store, 1);
  EXPECT_EQ(first.learners(), 0);
  second.learn_of_difference();
  EXPECT_EQ(first.learners(), 1);
  first.learn_of_difference();
  EXPECT_EQ(second.learners(), 2);
}

}  // namespace
}  // namespace lockstep::comm
