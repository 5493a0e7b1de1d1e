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

TEST(MakeLoader, SaysOnTheBoardWhereItsTimeGoes) {
  struct Slow final : data::Dataset {
    explicit Slow(const BoardRank& rank) : self(rank) {}
    int64_t size() const override { return 6; }
    std::vector<data::Field> fields() const override { return {{.name = "data", .dtype = at::kLong, .shape = {}}}; }
    void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
      doing = self.doing.get();
      stats += {.read_ns = 1, .decode_ns = 20, .transform_ns = 300};
      *rows[0].mutable_data_ptr<int64_t>() = index;
    }
    std::string fingerprint() const override { return "slow"; }
    std::string description() const override { return "slow"; }
    const BoardRank& self;
    mutable std::string doing;
  };
  const auto world = testing_support::own_world();
  const auto slow = std::make_shared<Slow>(world->self());
  data::Loader loader = make_loader(*world, slow, {.lanes = 1, .batch_size = 3, .seed = 1}, {.workers = 0});
  for (int step = 0; step < 2; ++step) loader.next();
  EXPECT_EQ(slow->doing, "waiting for data") << "a hang report reads it";
  EXPECT_EQ(world->self().doing.get(), "");
  EXPECT_EQ(world->self().data_read_ns, 6);
  EXPECT_EQ(world->self().data_decode_ns, 120);
  EXPECT_EQ(world->self().data_transform_ns, 1800);
  EXPECT_GT(world->self().data_wait_ns, 0);
}

}  // namespace
}  // namespace lockstep::loop
