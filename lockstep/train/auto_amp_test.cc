#include "lockstep/train/auto_amp.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/amp/rates.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/train/testing/only_world.h"

namespace lockstep::train {
namespace {

using amp::AmpLevel;
using amp::HalfType;

class AutoAmpTest : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CACHE_HOME", folder_.c_str(), 1); }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  static World& world() { return *testing_support::only_world(); }
  std::string folder_ = testing::TempDir() + "auto_amp";
};

TEST_F(AutoAmpTest, RanksFollowTheRatesOfRank0) {
  amp::write_rates(amp::cache_folder(), {.fp32 = 10, .bf16 = 51, .fp16 = 40});
  const ResolvedAmp resolved = resolve_amp(HalfType::kBf16, DeviceKind::kCpu, world());
  EXPECT_EQ(resolved.level, AmpLevel::kO1);
  EXPECT_EQ(resolved.dtype, HalfType::kBf16);
  EXPECT_EQ(resolved.why, "5.1 times fp32 here");
  amp::write_rates(amp::cache_folder(), {.fp32 = 10, .bf16 = 5, .fp16 = 5});
  EXPECT_EQ(resolve_amp(HalfType::kBf16, DeviceKind::kCpu, world()).level, AmpLevel::kO0);
}

TEST_F(AutoAmpTest, AnAskedForFp16IsKept) {
  amp::write_rates(amp::cache_folder(), {.fp32 = 10, .bf16 = 51, .fp16 = 40});
  const ResolvedAmp resolved = resolve_amp(HalfType::kFp16, DeviceKind::kCpu, world());
  EXPECT_EQ(resolved.dtype, HalfType::kFp16);
  EXPECT_EQ(resolved.why, "4.0 times fp32 here");
  EXPECT_EQ(resolve_amp(HalfType::kFp16, DeviceKind::kCuda, world()).level, AmpLevel::kO1);
}

TEST_F(AutoAmpTest, ACheckpointsPrecisionIsRead) {
  const auto recorded = [](const char* level, const char* dtype, const char* keep) {
    return amp_of_checkpoint({.options = {{"amp", level}, {"dtype", dtype}, {"keep-batchnorm-fp32", keep}}});
  };
  EXPECT_EQ(recorded("O0", "bf16", "").level, AmpLevel::kO0);
  EXPECT_EQ(recorded("O1", "fp16", "").dtype, HalfType::kFp16);
  EXPECT_EQ(recorded("O1", "fp16", "").keep_batchnorm_fp32, std::nullopt);
  EXPECT_EQ(recorded("O2", "bf16", "off").keep_batchnorm_fp32, false);
  EXPECT_EQ(recorded("O3", "bf16", "on").keep_batchnorm_fp32, true);
  EXPECT_THROW(amp_of_checkpoint({}), DataError);
}

TEST_F(AutoAmpTest, AnEvaluationIsInThePrecisionOfItsRunUnlessToldOtherwise) {
  const auto run = [](const char* level, const char* dtype) {
    return Origin{.options = {{"amp", level}, {"dtype", dtype}, {"keep-batchnorm-fp32", ""}}};
  };
  const ResolvedAmp as_trained = amp_of_evaluation({}, run("O1", "fp16"), DeviceKind::kCpu, world());
  EXPECT_EQ(as_trained.level, AmpLevel::kO1);
  EXPECT_EQ(as_trained.dtype, HalfType::kFp16);
  EXPECT_EQ(as_trained.why, "as in the run");
  const ResolvedAmp given =
      amp_of_evaluation({.amp = AmpLevel::kO2, .dtype = {}}, run("O1", "fp16"), DeviceKind::kCpu, world());
  EXPECT_EQ(given.level, AmpLevel::kO2);
  EXPECT_EQ(given.dtype, HalfType::kBf16) << "as in training";
  EXPECT_EQ(given.why, "");
  EXPECT_EQ(amp_of_evaluation({.amp = AmpLevel::kO0, .dtype = {}}, run("O1", "fp16"), DeviceKind::kCpu, world()).level,
            AmpLevel::kO0);
  EXPECT_EQ(
      amp_of_evaluation({.amp = {}, .dtype = HalfType::kBf16}, run("O1", "fp16"), DeviceKind::kCpu, world()).dtype,
      HalfType::kBf16);
  EXPECT_EQ(amp_of_evaluation({}, std::nullopt, DeviceKind::kCpu, world()).level, AmpLevel::kO0);
  amp::write_rates(amp::cache_folder(), {.fp32 = 10, .bf16 = 51, .fp16 = 40});
  EXPECT_EQ(
      amp_of_evaluation({.amp = AmpLevel::kAuto, .dtype = HalfType::kFp16}, std::nullopt, DeviceKind::kCpu, world())
          .why,
      "4.0 times fp32 here");
}

TEST_F(AutoAmpTest, AHalfTypeAloneNeedsARunThatHadOne) {
  using lockstep::testing_support::refusal;
  const amp::RecordedPrecisionOptions fp16{.amp = {}, .dtype = HalfType::kFp16};
  const Origin run{.options = {{"amp", "O0"}, {"dtype", "bf16"}, {"keep-batchnorm-fp32", ""}}};
  EXPECT_EQ(refusal([&] { amp_of_evaluation(fp16, run, DeviceKind::kCpu, world()); }),
            "--dtype fp16 goes with --amp, and the run had none; add --amp, or leave it out");
  EXPECT_EQ(refusal([&] { amp_of_evaluation(fp16, std::nullopt, DeviceKind::kCpu, world()); }),
            "--dtype fp16 goes with --amp, and the checkpoint is of no run; add --amp, or leave it out");
}

}  // namespace
}  // namespace lockstep::train
