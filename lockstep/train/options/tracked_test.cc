#include "lockstep/train/options/tracked.h"

#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

TEST(Tracked, ReadsBackWhatItWrites) {
  for (const Tracked& tracked : {Tracked{}, {.csv = true}, {.tensorboard = true}, {.csv = true, .tensorboard = true}}) {
    EXPECT_EQ(read_tracked("track", write_tracked(tracked)), tracked);
  }
  EXPECT_EQ(read_tracked("track", "tensorboard,csv"), (Tracked{.csv = true, .tensorboard = true}));
}

TEST(Tracked, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const char* text) {
    return testing_support::refusal([text] { read_tracked("track", text); });
  };
  EXPECT_EQ(refusal("tensorbord"), "--track tensorbord: expected csv, tensorboard or none");
  EXPECT_EQ(refusal("csv,none"), "--track csv,none: none stands alone");
  EXPECT_NE(refusal("csv,,tensorboard"), "");
  EXPECT_NE(refusal(""), "");
}

}  // namespace
}  // namespace lockstep::train
