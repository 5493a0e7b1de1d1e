// Samples that can't be read in a loop of one's own, on real ranks: the same others take their places, they are counted
// over all ranks, and beyond the limit all ranks end at the same step.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/loop/evaluate.h"
#include "lockstep/loop/make_loader.h"
#include "lockstep/loop/state.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using testing_support::expect_ranks_pass;
using testing_support::join_world;

struct Damaged final : data::Dataset {
  int64_t size() const override { return 40; }
  std::vector<data::Field> fields() const override { return {{.name = "data", .dtype = at::kLong, .shape = {}}}; }
  void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    if (bad.contains(index)) throw DataError(name_of(index), ": is damaged");
    *rows[0].mutable_data_ptr<int64_t>() = index;
  }
  std::string fingerprint() const override { return "damaged"; }
  std::string description() const override { return "numbers, of which some are damaged"; }
  const std::set<int64_t> bad = {3, 14, 15, 27};
};

data::Loader loader_of(const World& world, int64_t skip_bad) {
  return loop::make_loader(world, std::make_shared<Damaged>(), {.lanes = 4, .batch_size = 2, .seed = 6},
                           {.workers = 2, .skip_bad = skip_bad});
}

// The argument names the file for all lanes' samples, and for what was passed over, step after step.
RANK_PROGRAM(pass_over) {
  const auto world = join_world(context);
  auto loader = loader_of(*world, 4);
  std::ofstream file;
  if (context.rank == 0) file.open(context.argument);
  for (int step = 0; step < 12; ++step) {
    const auto batch = loader.next();
    std::vector<at::Tensor> own;
    for (const auto& lane : batch.lanes) own.push_back(lane.data());
    const at::Tensor all = world->communicator().all_gather(at::cat(own)).flatten();
    file << step << ": " << all << '\n';
    for (const auto& each : batch.skipped) file << each.why << '\n';
  }
  EXPECT_EQ(loader.skipped()->all().size(), 4u);
  const Damaged data;
  const auto sums = [](const data::Batch& batch) -> loop::Sums { return {{"sum", batch.data().sum().item<double>()}}; };
  const auto found = loop::evaluate(*world, data, sums, {.chunk = 1, .skipped = loader.skipped()});
  EXPECT_EQ(found.samples, 36);
  EXPECT_EQ(found.sum("sum"), 39 * 20 - (3 + 14 + 15 + 27));
}
TEST(SkippedSamples, OthersTakeTheirPlacesAtAnyNumberOfRanks) {
  const std::string one = written_by("pass_over", 1);
  EXPECT_NE(one.find("sample 27: is damaged"), std::string::npos) << one;
  for (const int ranks : {2, 4}) EXPECT_EQ(written_by("pass_over", ranks), one) << ranks;
}

// The argument names the file for the step, and for what is thrown.
RANK_PROGRAM(pass_over_too_many) {
  const auto world = join_world(context);
  auto loader = loader_of(*world, 3);
  int step = 0;
  std::string message;
  try {
    for (; step < 5; ++step) loader.next();
  } catch (const DataError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("4 samples can't be read"), std::string::npos) << message;
  world->communicator().barrier();  // all ranks are there: none has ended alone
  const at::Tensor steps = world->communicator().all_gather(at::full({1}, step, at::kLong));
  EXPECT_TRUE(steps.eq(step).all().item<bool>()) << steps;
  if (context.rank == 0) std::ofstream(context.argument) << step << ": " << message << '\n';
}
TEST(SkippedSamples, BeyondTheLimitAllRanksEndAtTheSameStep) {
  const std::string one = written_by("pass_over_too_many", 1);
  for (const int ranks : {2, 4}) EXPECT_EQ(written_by("pass_over_too_many", ranks), one) << ranks;
}

RANK_PROGRAM(pass_over_and_resume) {
  const auto world = join_world(context);
  auto loader = loader_of(*world, 4), resumed = loader_of(*world, 4);
  int64_t step = 0;
  loop::State state(*world, step, {{"sampler", loader}}), again(*world, step, {{"sampler", resumed}});
  for (; step < 5; ++step) loader.next();
  again.load(state.value(), "the loop's state");
  EXPECT_EQ(resumed.skipped()->all(), loader.skipped()->all());
  EXPECT_EQ(resumed.skipped()->all().size(), 4u);
  for (; step < 10; ++step) EXPECT_TRUE(resumed.next().skipped.empty()) << "each is told of once";
}
TEST(SkippedSamples, AreKeptInALoopsState) { expect_ranks_pass("pass_over_and_resume", 2); }

}  // namespace
}  // namespace lockstep::parallel
