// Training on a GPU, where there is one: `./run test cuda`.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "runs.h"

namespace lockstep::e2e {
namespace {

Words gpu_words(const std::string& run, const Words& more) {
  return train_words({"--steps", std::to_string(kSteps), "--out", run, "--device", "cuda"}) + more;
}

// Why nothing can be trained on a GPU here; empty if it can.
std::string why_no_gpu() {
  static const std::string why = [] {
    const TempDir dir;
    const auto result = lockstep(gpu_words(dir / "run", {}));
    return result.exit_code == 0 ? std::string() : result.err;
  }();
  return why;
}

// `./run test cuda` is run where there is one, and asks for it.
#define NEEDS_GPU()                                                                        \
  if (!why_no_gpu().empty()) {                                                             \
    if (std::getenv("LOCKSTEP_TEST_GPU") != nullptr) FAIL() << "no GPU: " << why_no_gpu(); \
    GTEST_SKIP() << "needs a GPU: " << why_no_gpu();                                       \
  }

// Kernels of a GPU add in another order than the CPU's: losses are near, not equal.
void expect_near_the_cpu(const Words& more, double tolerance) {
  const TempDir dir;
  const auto result = lockstep(gpu_words(dir / "run", more));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto gpu = final_of(dir / "run"), cpu = final_of(finished_run());
  EXPECT_NEAR(gpu.at("loss").get<double>(), cpu.at("loss").get<double>(), tolerance) << result.out;
  EXPECT_EQ(gpu.at("steps"), cpu.at("steps"));
}

TEST(Gpu, AMistakeIsOneLine) {
  const TempDir dir;
  const auto result = lockstep(gpu_words(dir / "run", {"--backend", "shm"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--device cuda: goes with --backend nccl"), std::string::npos) << result.err;
}

TEST(Gpu, OneRankOverNccl) {
  NEEDS_GPU();
  expect_near_the_cpu({}, 1e-2);
}

TEST(Gpu, TwoRanksShareOneOverGloo) {
  NEEDS_GPU();
  expect_near_the_cpu({"--nproc", "2", "--backend", "gloo"}, 1e-2);
}

TEST(Gpu, InMixedPrecisionWithAnAverage) {
  NEEDS_GPU();
  expect_near_the_cpu({"--amp", "O1"}, 0.1);
  const TempDir dir;
  EXPECT_EQ(lockstep(gpu_words(dir / "run", kAveraged)).exit_code, 0);
}

TEST(Gpu, TheOtherRecipes) {
  NEEDS_GPU();
  const std::vector<Words> recipes = {{"imagenet", "--arch", "resnet18", "--sync-bn"},
                                      {"imagenet", "--arch", "mobilenet_v2"},
                                      {"unet", "--size", "32"}};
  for (const Words& words : recipes) {
    const TempDir dir;
    const auto result = lockstep(
        Words{"train"} + words +
        Words{"--lanes", "2", "--batch-size", "4", "--steps", "3", "--amp", "--device", "cuda", "--out", dir / "run"});
    EXPECT_EQ(result.exit_code, 0) << words[0] << ": " << result.err;
    EXPECT_TRUE(std::isfinite(final_of(dir / "run").at("loss").get<double>()));
  }
}

TEST(Gpu, ACheckpointGoesOnOnTheCpu) {
  NEEDS_GPU();
  const TempDir dir;
  ASSERT_EQ(lockstep(gpu_words(dir / "run", {})).exit_code, 0);
  const auto result = lockstep(
      {"eval", "mnist", "--data", digits_folder(), "--load", (dir / "run") + "/checkpoints/last.pt", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace lockstep::e2e
