#include "lockstep/launch/etcd/epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Node node(const std::string& id, int64_t joined) {
  return {.id = id, .host = "host-" + id, .address = "10.0.0." + id, .nproc = 2, .ports = {1, 2, 3}, .joined = joined};
}

std::vector<std::string> ids(const Epoch& epoch) {
  std::vector<std::string> found;
  for (const Node& each : epoch.nodes) found.push_back(each.id);
  return found;
}

std::vector<int> ranks(const Epoch& epoch) {
  std::vector<int> found;
  for (const Node& each : epoch.nodes) found.push_back(each.nproc);
  return found;
}

constexpr EpochLimits kLimits{.least = 2, .most = 3, .max_restarts = 2, .last_call = 5};

// Three nodes, of which all take part in epoch 1.
EpochView running() {
  EpochView view{.nodes = {node("1", 1), node("2", 2), node("3", 3)}};
  view.epoch = next_epoch(view, kLimits);
  return view;
}

NodeOutcome failed(const std::string& id, int code) { return {.node = id, .exit_code = code, .text = "was killed"}; }
NodeOutcome stopped(const std::string& id) { return {.node = id, .exit_code = CommError::kExitCode, .stopped = true}; }
NodeOutcome done(const std::string& id) { return {.node = id}; }

TEST(Epoch, IsReadAsItWasWritten) {
  Epoch epoch{.number = 3,
              .run = "node-7",
              .restarts = 2,
              .nodes = {node("1", 0)},
              .ended = true,
              .exit_code = 69,
              .why = "\"x\" é"};
  const auto read = Epoch::decode(epoch.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->encode(), epoch.encode());
  EXPECT_EQ(read->nodes[0].ports, epoch.nodes[0].ports);
  EXPECT_FALSE(Epoch::decode("{\"number\": 3}"));
  EXPECT_FALSE(Node::decode("x"));
  const NodeOutcome outcome{.node = "1", .exit_code = 3, .asked = true, .text = "t"};
  EXPECT_EQ(NodeOutcome::decode(outcome.encode())->encode(), outcome.encode());
}

TEST(Epoch, BeginsWithAllNodesAtOnceAndWithFewerAfterALastCall) {
  EpochView view{.nodes = {node("1", 1)}, .quiet = 60};
  EXPECT_FALSE(next_epoch(view, kLimits)) << "too few";
  view.nodes.push_back(node("2", 2));
  view.quiet = 4;
  EXPECT_FALSE(next_epoch(view, kLimits)) << "another one may come";
  view.quiet = 5;
  EXPECT_THAT(ids(*next_epoch(view, kLimits)), ElementsAre("1", "2"));
  view.quiet = 0;
  view.nodes.push_back(node("3", 3));
  view.nodes.push_back(node("4", 4));
  const auto epoch = next_epoch(view, kLimits);
  EXPECT_THAT(ids(*epoch), ElementsAre("1", "2", "3")) << "the fourth is a spare one";
  EXPECT_TRUE(epoch->number == 1 && epoch->restarts == 0 && !epoch->ended);
}

TEST(Epoch, EndsWhenAllRanksHaveEnded) {
  EpochView view = running();
  EXPECT_EQ(broken(view), "");
  view.outcomes = {done("1"), done("2")};
  EXPECT_FALSE(next_epoch(view, kLimits));
  view.outcomes.push_back(done("3"));
  const auto end = next_epoch(view, kLimits);
  EXPECT_TRUE(end->ended && end->exit_code == 0 && end->number == 1);
}

TEST(Epoch, ANodeThatIsDoneMayLeave) {
  EpochView view = running();
  view.outcomes = {done("3")};
  view.nodes.pop_back();
  EXPECT_TRUE(lost_nodes(view).empty());
  EXPECT_EQ(broken(view), "");
}

// The others' ranks end first: their ports and their files are the next epoch's.
TEST(Epoch, ALostNodeLeadsToOneWithoutIt) {
  EpochView view = running();
  view.nodes.erase(view.nodes.begin() + 1);
  EXPECT_THAT(broken(view), HasSubstr("host-2 is gone"));
  view.outcomes = {stopped("1")};
  EXPECT_FALSE(next_epoch(view, kLimits)) << "node 3 has not stopped yet";
  view.outcomes.push_back(stopped("3"));
  const auto next = next_epoch(view, kLimits);
  ASSERT_TRUE(next);
  EXPECT_THAT(ids(*next), ElementsAre("1", "3"));
  EXPECT_TRUE(next->number == 2 && next->restarts == 1 && !next->ended);
  EXPECT_EQ(next->run, "1") << "the same run";
  EXPECT_THAT(next->why, HasSubstr("restart 1 of 2 with host-1, host-3"));
}

TEST(Epoch, ASpareNodeTakesALostOnesPlace) {
  EpochView view = running();
  view.nodes.erase(view.nodes.begin());
  view.nodes.push_back(node("4", 4));
  view.outcomes = {stopped("2"), stopped("3")};
  EXPECT_THAT(ids(*next_epoch(view, kLimits)), ElementsAre("2", "3", "4"));
}

// A node that did not reach etcd for a while has stopped its ranks, and is there again.
TEST(Epoch, RanksThatWereStoppedAreStartedAnew) {
  EpochView view = running();
  view.outcomes = {stopped("2")};
  EXPECT_THAT(broken(view), HasSubstr("ranks have been stopped on host-2"));
  view.outcomes = {stopped("1"), stopped("2"), stopped("3")};
  const auto next = next_epoch(view, kLimits);
  EXPECT_TRUE(next->number == 2 && !next->ended);
}

// Three nodes of two ranks are left of four, and eight lanes can be divided by four ranks, not by six.
TEST(Epoch, AsManyNodesTakePartAsTheLanesCanBeDividedBy) {
  const EpochLimits limits{.least = 1, .most = 4, .max_restarts = 2, .last_call = 5, .lanes = 8};
  EpochView view{.nodes = {node("1", 1), node("2", 2), node("3", 3), node("4", 4)}};
  view.epoch = next_epoch(view, limits);
  EXPECT_THAT(ids(*view.epoch), ElementsAre("1", "2", "3", "4"));
  view.nodes.erase(view.nodes.begin() + 1);
  view.outcomes = {stopped("1"), stopped("3"), stopped("4")};
  EXPECT_THAT(ids(*next_epoch(view, limits)), ElementsAre("1", "3")) << "the third is a spare one";
  const EpochLimits more{.least = 3, .most = 4, .max_restarts = 2, .last_call = 5, .lanes = 8};
  EXPECT_THAT(ids(*next_epoch(view, more)), ElementsAre("1", "3", "4"));
  EXPECT_THAT(ranks(*next_epoch(view, more)), ElementsAre(2, 1, 1)) << "three nodes are wanted";
  const EpochLimits odd{.least = 1, .most = 4, .max_restarts = 2, .last_call = 5, .lanes = 1};
  EXPECT_THAT(ranks(*next_epoch(view, odd)), ElementsAre(1));
}

// The ranks that begin on nodes with so many each; "1" is the eldest.
std::string begun(const std::vector<int>& nprocs, EpochLimits limits) {
  limits.last_call = 0;
  EpochView view;
  for (const int nproc : nprocs) {
    const auto number = std::ssize(view.nodes) + 1;
    view.nodes.push_back(node(std::to_string(number), number));
    view.nodes.back().nproc = nproc;
  }
  std::string text;
  const std::vector<Node> nodes = next_epoch(view, limits).value().nodes;
  for (const Node& each : nodes) text += cat(each.id, ':', each.nproc, ' ');
  return text;
}

TEST(Epoch, NodesMayHaveUnlikeNumbersOfRanks) {
  const EpochLimits limits{.least = 1, .most = 4, .lanes = 16};
  EXPECT_EQ(begun({8, 4, 4}, limits), "1:8 2:4 3:4 ");
  EXPECT_EQ(begun({8, 4}, limits), "1:8 ") << "not twelve";
  EXPECT_EQ(begun({4, 8}, limits), "2:8 ") << "whole nodes before parts of them";
  EXPECT_EQ(begun({4, 2, 4}, limits), "1:4 3:4 ") << "not the youngest alone may be left out";
  EXPECT_EQ(begun({6, 6}, limits), "1:4 2:4 ");
  EXPECT_EQ(begun({6, 3}, limits), "1:5 2:3 ");
  EXPECT_EQ(begun({3}, limits), "1:2 ");
  EXPECT_EQ(begun({1, 1, 1, 1, 16}, limits), "5:16 ");
  EXPECT_EQ(begun({3, 3}, {.least = 2, .most = 2, .lanes = 6}), "1:3 2:3 ");
  EXPECT_EQ(begun({4, 4, 4}, {.least = 3, .most = 3, .lanes = 8}), "1:3 2:3 3:2 ");
  EXPECT_EQ(begun({2, 2, 2}, {.least = 3, .most = 3, .lanes = 2}), "1:2 2:2 3:2 ") << "whose ranks say what is wrong";
  EXPECT_EQ(begun({8, 4, 4}, {.least = 1, .most = 4}), "1:8 2:4 3:4 ") << "of unknown lanes";
}

TEST(Epoch, ManyNodesAreChosenFromInAMoment) {
  std::vector<int> nprocs(100, 8);
  nprocs.front() = 7;  // whose node no sum of 512 has
  const std::string text = begun(nprocs, {.least = 1, .most = 256, .lanes = 512});
  EXPECT_EQ(std::count(text.begin(), text.end(), ':'), 64);
  EXPECT_TRUE(text.starts_with("2:8 ") && text.ends_with("65:8 ")) << text;
}

// An outage of etcd: all nodes come back under other names, one after the other.
TEST(Epoch, NodesThatComeBackAfterAnOutageAreWaitedFor) {
  EpochView view = running();
  view.nodes = {node("4", 4), node("5", 5)};
  view.quiet = 1;
  EXPECT_FALSE(next_epoch(view, kLimits));
  view.nodes.push_back(node("6", 6));
  const auto next = next_epoch(view, kLimits);
  ASSERT_TRUE(next);
  EXPECT_THAT(ids(*next), ElementsAre("4", "5", "6"));
  EXPECT_EQ(next->restarts, 1) << "it is counted";
}

TEST(Epoch, TooFewNodesWaitForOthers) {
  EpochView view = running();
  view.nodes.resize(1);
  view.outcomes = {stopped("1")};
  EXPECT_FALSE(next_epoch(view, kLimits));
  view.nodes.push_back(node("5", 9));
  EXPECT_THAT(ids(*next_epoch(view, kLimits)), ElementsAre("1", "5"));
}

TEST(Epoch, FailedRanksAreStartedAnewAsOftenAsIsAllowed) {
  EpochView view = running();
  view.outcomes = {failed("1", CommError::kExitCode), failed("2", 137), stopped("3")};
  EXPECT_THAT(broken(view), HasSubstr("ranks have failed on host-2: was killed")) << "the first only missed its peer";
  for (int restart = 1; restart <= 2; ++restart) {
    const auto next = next_epoch(view, kLimits);
    ASSERT_TRUE(next && !next->ended);
    EXPECT_EQ(next->restarts, restart);
    view.epoch = next;
  }
  const auto end = next_epoch(view, kLimits);
  EXPECT_TRUE(end->ended);
  EXPECT_EQ(end->exit_code, 137);
  EXPECT_THAT(end->why, HasSubstr("after 2 restarts"));
}

TEST(Epoch, ThreeRestartsThatGetNoFurtherAreTheLastOnes) {
  EpochLimits limits = kLimits;
  limits.max_restarts = 100;
  EpochView view = running();
  const auto fail_at = [&](int64_t step) {
    view.outcomes = {failed("1", 137), stopped("2"), stopped("3")};
    view.outcomes[0].step = step;
    view.epoch = next_epoch(view, limits);
    ASSERT_TRUE(view.epoch);
  };
  for (const int64_t step : {7, 7, 9, 9, 8}) {
    fail_at(step);
    EXPECT_FALSE(view.epoch->ended) << step;
  }
  fail_at(-1);
  EXPECT_FALSE(view.epoch->ended) << "nobody knows how far it was";
  for (int i = 0; i < 2; ++i) fail_at(9);
  EpochView lost = view;
  lost.outcomes = {stopped("1"), stopped("2")};
  lost.outcomes[0].step = 9;
  lost.nodes.pop_back();
  EXPECT_FALSE(next_epoch(lost, limits)->ended) << "that a node is lost says nothing of the next epoch";
  EXPECT_FALSE(view.epoch->ended);
  fail_at(9);
  EXPECT_TRUE(view.epoch->ended);
  EXPECT_EQ(view.epoch->exit_code, 137);
  EXPECT_THAT(view.epoch->why, HasSubstr("3 epochs in a row got no further than step 9"));
}

TEST(Epoch, WhatWouldHappenAgainIsNotTriedAgain) {
  EpochView view = running();
  NodeOutcome mistake = failed("2", 2);
  mistake.repeats = true;
  view.outcomes = {stopped("1"), mistake, stopped("3")};
  const auto end = next_epoch(view, kLimits);
  EXPECT_TRUE(end->ended && end->exit_code == 2);
}

TEST(Epoch, ALostNodeWithoutRestartsEndsTheRun) {
  EpochView view = running();
  view.nodes.pop_back();
  view.outcomes = {failed("1", CommError::kExitCode), stopped("2")};
  EpochLimits none = kLimits;
  none.max_restarts = 0;
  const auto end = next_epoch(view, none);
  EXPECT_TRUE(end->ended);
  EXPECT_EQ(end->exit_code, CommError::kExitCode);
  EXPECT_EQ(end->why, "host-3 is gone");
}

TEST(Epoch, ARequestToStopEndsIt) {
  EpochView view = running();
  NodeOutcome asked{.node = "1", .exit_code = 130, .asked = true};
  view.outcomes = {asked};
  EXPECT_NE(broken(view), "") << "the others stop as well";
  view.outcomes = {asked, stopped("2"), stopped("3")};
  const auto end = next_epoch(view, kLimits);
  EXPECT_TRUE(end->ended && end->exit_code == 130);
}

TEST(Epoch, ARequestThatRanksAnswerWithSuccessStopsTheOthers) {
  EpochView view = running();
  view.outcomes = {{.node = "1", .exit_code = 0, .asked = true}};
  EXPECT_EQ(broken(view), "the run was asked to stop");
  view.outcomes.push_back(failed("2", CommError::kExitCode));
  view.outcomes.push_back(stopped("3"));
  EXPECT_EQ(next_epoch(view, kLimits)->exit_code, CommError::kExitCode) << "not all ranks have ended well";
}

// Whether it has ended, or was left by all its nodes.
TEST(Epoch, AnIdIsUsedAgainOnceItsNodesHaveLeft) {
  for (const bool ended : {true, false}) {
    EpochView view = running();
    view.epoch->ended = ended;
    view.epoch->restarts = 2;
    view.nodes = {node("7", 70), node("8", 80), node("9", 90)};
    for (Node& each : view.nodes) each.before = 1;
    const auto next = next_epoch(view, kLimits);
    ASSERT_TRUE(next) << ended;
    EXPECT_TRUE(next->number == 2 && next->restarts == 0 && !next->ended) << ended;
  }
}

TEST(Epoch, ASpareOneOfARunThatHasEndedBeginsNoOther) {
  EpochView view = running();
  view.epoch->ended = true;
  view.nodes = {node("4", 4), node("5", 5), node("6", 6)};
  view.nodes[2].before = 1;
  EXPECT_FALSE(next_epoch(view, kLimits)) << "the first two are leaving";
}

}  // namespace
}  // namespace lockstep::launch
