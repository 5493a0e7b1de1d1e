#include "lockstep/loop/make_loader.h"

#include <gtest/gtest.h>

#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/loop/testing/own_world.h"

namespace lockstep::loop {
namespace {

TEST(MakeLoader, HasThisRanksLanesOfTheWholeDataSet) {
  const auto world = testing_support::own_world();
  const auto digits = datasets::synthetic_digits({.seed = 1, .train_size = 20, .test_size = 4}).train;
  data::Loader loader = make_loader(*world, digits, {.lanes = 2, .batch_size = 3, .seed = 1});
  EXPECT_EQ(loader.sampler().options().dataset_size, 20);
  EXPECT_EQ(loader.next().lanes.size(), 2u);
}

TEST(MakeLoader, MayLeaveTheLastBatchOut) {
  const auto world = testing_support::own_world();
  const auto digits = datasets::synthetic_digits({.seed = 1, .train_size = 20, .test_size = 4}).train;
  data::Loader loader = make_loader(*world, digits, {.lanes = 2, .batch_size = 3, .seed = 1, .drop_last = true});
  for (int step = 0; step < 3; ++step) EXPECT_EQ(loader.next().global_samples, 6);
  EXPECT_EQ(loader.position(), (data::Position{.epoch = 1, .step = 0}));
}

}  // namespace
}  // namespace lockstep::loop
