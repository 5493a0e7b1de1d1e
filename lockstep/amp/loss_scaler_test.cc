#include "lockstep/amp/loss_scaler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

ScalerOptions small() {
  ScalerOptions options;
  options.enabled = true;
  options.init_scale = 16;
  options.growth_interval = 3;
  options.min_scale = 4;
  options.max_scale = 64;
  return options;
}

struct Transition {
  const char* name;
  ScalerOptions options;
  ScalerState before;
  bool found_inf;
  ScalerState after;
};

TEST(LossScaler, EveryTransition) {
  ScalerOptions patient = small(), fixed = small(), off = small();
  patient.hysteresis = 2;
  fixed.dynamic = false;
  off.enabled = false;
  const Transition table[] = {
      {"a good step counts", small(), {16, 0, 1}, false, {16, 1, 1}},
      {"enough of them grow the scale", small(), {16, 2, 1}, false, {32, 0, 1}},
      {"not above the most", small(), {64, 2, 1}, false, {64, 0, 1}},
      {"an overflow halves it and starts counting anew", small(), {16, 2, 1}, true, {8, 0, 0}},
      {"so does the next", small(), {8, 0, 0}, true, {4, 0, 0}},
      {"not below the least", small(), {4, 0, 0}, true, {4, 0, 0}},
      {"hysteresis forgives the first", patient, {16, 2, 2}, true, {16, 0, 1}},
      {"but not the second", patient, {16, 0, 1}, true, {8, 0, 0}},
      {"a good step in between does not restore it", patient, {16, 0, 1}, false, {16, 1, 1}},
      {"growth does", patient, {16, 2, 0}, false, {32, 0, 2}},
      {"a static scale stays, overflow", fixed, {16, 0, 1}, true, {16, 0, 1}},
      {"a static scale stays, good step", fixed, {16, 2, 1}, false, {16, 2, 1}},
      {"without a scaler nothing moves", off, {1, 0, 1}, true, {1, 0, 1}},
  };
  for (const auto& row : table) EXPECT_EQ(next(row.options, row.before, row.found_inf), row.after) << row.name;
}

TEST(LossScaler, BeginsWithinItsBounds) {
  ScalerOptions options = small();
  options.init_scale = 65536;
  EXPECT_EQ(LossScaler(options).scale(), 64);
  options.init_scale = 1;
  EXPECT_EQ(LossScaler(options).scale(), 4);
  options.dynamic = false;
  EXPECT_EQ(LossScaler(options).scale(), 1);
}

TEST(LossScaler, OneThatIsOffStaysOff) {
  LossScaler off;
  load_state(off, {{"scale", 65536}, {"_growth_tracker", 3}});
  EXPECT_EQ(off.scale(), 1);
}

TEST(LossScaler, SkipsOnlyWhereThereIsAScaler) {
  LossScaler none;
  EXPECT_EQ(none.scale(), 1);
  EXPECT_FALSE(none.update(true));
  LossScaler scaler(small());
  EXPECT_TRUE(scaler.update(true));
  EXPECT_TRUE(scaler.update(true)) << "each of several in a row";
  EXPECT_FALSE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 4);
}

TEST(LossScaler, GoesOnFromASavedState) {
  LossScaler one(small()), two(small());
  for (int i = 0; i < 2; ++i) one.update(false);
  two.load(one.state());
  one.update(false);
  two.update(false);
  EXPECT_EQ(two.scale(), 32);
  EXPECT_EQ(one.state(), two.state());
}

TEST(LossScaler, ImpossibleOptionsAreRefused) {
  ScalerOptions options = small();
  options.backoff_factor = 2;
  EXPECT_THROW(LossScaler{options}, ConfigError);
}

TEST(LossScaler, EqualsPyTorchsGradScaler) {
  const auto recorded =
      nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/fixtures/golden/grad_scaler.json"));
  ScalerOptions options;
  options.enabled = true;
  options.init_scale = recorded["init_scale"];
  options.growth_factor = recorded["growth_factor"];
  options.backoff_factor = recorded["backoff_factor"];
  options.growth_interval = recorded["growth_interval"];
  LossScaler scaler(options);
  for (size_t t = 0; t < recorded["overflow"].size(); ++t) {
    EXPECT_EQ(scaler.scale(), recorded["scale"][t].get<double>()) << "before step " << t;
    scaler.update(recorded["overflow"][t].get<int>() != 0);
  }
  EXPECT_EQ(scaler.scale(), recorded["scale"].back().get<double>());
  EXPECT_EQ(scaler.state().good_steps, recorded["state_dict"]["_growth_tracker"].get<int>());
}

}  // namespace
}  // namespace lockstep::amp
