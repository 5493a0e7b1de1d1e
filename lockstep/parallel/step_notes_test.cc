#include "lockstep/parallel/step_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using testing::HasSubstr;

TEST(StepNotes, TravelInOneFold) {
  comm::SingleCommunicator comm;
  NotesFold fold({.loss = 0.5, .decision = 1, .samples = 8, .unfolded = 3, .weights = 77}, 4, comm);
  const StepNotes sum = fold.wait();
  EXPECT_EQ(sum.loss, 0.5);
  EXPECT_EQ(sum.decision, 1);
  EXPECT_EQ(sum.samples, 8);
  EXPECT_EQ(sum.unfolded, 3);
  EXPECT_EQ(sum.weights, 77);
}

TEST(StepNotes, AHashOfNamesIsAWholeNumberOfTheirOrder) {
  EXPECT_EQ(hash_of({}), 0);
  EXPECT_GT(hash_of({"weight"}), 0);
  EXPECT_LT(hash_of({"weight"}), 1e13);
  EXPECT_NE(hash_of({"weight", "bias"}), hash_of({"bias", "weight"}));
}

TEST(StepNotes, WhatRanksDoNotHaveAlikeIsNamed) {
  comm::SingleCommunicator comm;
  const StepNotes own{.samples = 8, .unfolded = 3, .weights = 77};
  const auto refused = [&](const StepNotes& sum, const std::vector<std::string>& unfolded = {}) {
    return testing_support::refusal([&] { check_notes(sum, own, 8, unfolded, "step 4", comm); });
  };
  EXPECT_EQ(refused(own), "");
  EXPECT_THAT(refused({.samples = 7, .unfolded = 3, .weights = 77}),
              HasSubstr("step 4: the lanes of all ranks hold 7"));
  EXPECT_EQ(
      refused({.samples = 8, .unfolded = 3, .weights = 77, .lanes = 2, .numbers = number_hash(1) + number_hash(0)}),
      "");
  for (const auto& lanes : {std::pair{0, 0}, {1, 2}, {0, 2}}) {
    EXPECT_THAT(refused({.samples = 8,
                         .unfolded = 3,
                         .weights = 77,
                         .lanes = 2,
                         .numbers = number_hash(lanes.first) + number_hash(lanes.second)}),
                HasSubstr("step 4: the ranks' 2 lanes don't have the numbers from 0 to 1, each once"));
  }
  EXPECT_THAT(refused({.samples = 8, .unfolded = 5, .weights = 77}), HasSubstr("on rank 0 of no parameter"));
  EXPECT_THAT(refused({.samples = 8, .unfolded = 5, .weights = 77}, {"head.bias"}),
              HasSubstr("on rank 0 of head.bias"));
  EXPECT_THAT(refused({.samples = 8, .unfolded = 3, .weights = 78}), HasSubstr("step 4, rank 0: its weights"));
  EXPECT_THAT(refused({.samples = 8, .unfolded = 3, .weights = 77, .modes = 1}),
              HasSubstr("step 4, rank 0: its network and those of other ranks are in different modes"));
}

}  // namespace
}  // namespace lockstep::parallel
