// Training on a GPU, where there is one: `./run test cuda`.
#include "lockstep/base/testing/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Words gpu_words(const std::string& run, const Words& more, const char* device = "cuda") {
  return train_words({"--steps", std::to_string(kSteps), "--out", run, "--device", device}) + more;
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

// As on a GPU, but only where it is asked for.
TEST(Gpu, TheLogOfEachRankNamesTheCpu) {
  const TempDir dir;
  const Words words = train_words({"--steps", "1", "--nproc", "2", "--out", dir / "run"});
  const auto result =
      Program({.command = Words{"/usr/bin/env", "LOCKSTEP_LOG=debug", bin_folder() + "/lockstep"} + words}).wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* name : {"rank0.log", "rank1.log"}) {
    std::ifstream log((dir / "run") + "/logs/" + name);
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    EXPECT_THAT(text, HasSubstr("debug: computes on CPU")) << name;
  }
}

TEST(Gpu, OneRankTrainsAsOnTheCpu) {
  LOCKSTEP_NEEDS_GPU();
  expect_near_the_cpu({}, 1e-2);
}

TEST(Gpu, TwoRanksShareOneOverGloo) {
  LOCKSTEP_NEEDS_GPU();
  expect_near_the_cpu({"--nproc", "2", "--backend", "gloo"}, 1e-2);
  const TempDir dir;
  const auto result = lockstep(gpu_words(dir / "run", {"--nproc", "2", "--backend", "gloo"}, "cuda:0"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 ranks share cuda:0"));
}

TEST(Gpu, SeveralRanksDoNotShareOneUnasked) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  const auto result = lockstep(gpu_words(dir / "run", {"--nproc", "2"}, "cuda:0"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--device cuda:0: is for one rank a node, and this one has 2"));
  const auto beyond = lockstep(gpu_words(dir / "run", {}, "cuda:999"));
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("--device cuda:999: "));
}

TEST(Gpu, TheHeaderAndTheLogNameTheDevice) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  const auto result = lockstep(gpu_words(dir / "run", {"--nproc", "auto"}, "cuda:0"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("(cuda:0), precision O0 float32, convolutions in TF32"), HasSubstr("ranks       1 ")));
  std::ifstream log((dir / "run") + "/logs/rank0.log");
  std::string first;
  std::getline(log, first);
  EXPECT_THAT(first, AllOf(HasSubstr("(cuda:0), compute capability"), HasSubstr("cuDNN"), HasSubstr("NCCL")));
}

TEST(Gpu, InMixedPrecisionWithAnAverage) {
  LOCKSTEP_NEEDS_GPU();
  expect_near_the_cpu({"--amp", "O1"}, 0.1);
  const TempDir dir;
  EXPECT_EQ(lockstep(gpu_words(dir / "run", kAveraged)).exit_code, 0);
}

TEST(Gpu, TheOtherRecipes) {
  LOCKSTEP_NEEDS_GPU();
  const std::vector<Words> recipes = {{"imagenet", "--arch", "resnet18", "--sync-bn"},
                                      {"imagenet", "--arch", "resnet50"},
                                      {"imagenet", "--arch", "mobilenet_v2"},
                                      {"unet", "--size", "32"}};
  for (const Words& words : recipes) {
    const TempDir dir;
    const auto result = lockstep(
        Words{"train"} + words +
        Words{"--lanes", "2", "--batch-size", "4", "--steps", "3", "--amp", "--device", "cuda", "--out", dir / "run"});
    EXPECT_EQ(result.exit_code, 0) << words[0] << ": " << result.err;
    EXPECT_EQ(result.err.find("deterministic"), std::string::npos)
        << "libtorch warns of sums by atomics: " << result.err;
    EXPECT_TRUE(std::isfinite(final_of(dir / "run").at("loss").get<double>()));
  }
}

// Steps that are recorded as a CUDA graph have the bits of those that are launched operation by operation.
TEST(Gpu, RecordedStepsHaveTheBitsOfOthers) {
  LOCKSTEP_NEEDS_GPU();
  const std::vector<Words> runs = {
      {"mnist", "--amp", "O0", "--optimizer", "adamw", "--lr", "0.001", "--eval-every", "5"},
      {"imagenet", "--arch", "resnet18", "--size", "64", "--amp", "O1", "--dtype", "fp16"},
      {"imagenet", "--arch", "mobilenet_v2", "--size", "64", "--amp", "O1"},
      {"unet", "--size", "32", "--amp", "O2", "--ema", "0.9"}};
  for (const Words& words : runs) {
    const TempDir dir;
    std::vector<std::string> weights;
    for (const std::string graph : {"on", "off"}) {
      const std::string run = dir / graph;
      const Words train = {"/usr/bin/env", "LOCKSTEP_LOG=debug", bin_folder() + "/lockstep", "train"};
      const auto result = Program({.command = train + words +
                                              Words{"--lanes", "1", "--batch-size", "8", "--steps", "9", "--device",
                                                    "cuda", "--cuda-graph", graph, "--out", run}})
                              .wait();
      ASSERT_EQ(result.exit_code, 0) << words[0] << ": " << result.err;
      EXPECT_EQ(result.err.find("recorded as a CUDA graph") != std::string::npos, graph == "on") << result.err;
      EXPECT_EQ(result.err.find("can't be recorded"), std::string::npos) << result.err;
      weights.push_back(final_of(run).at("weights_sha256").get<std::string>());
    }
    EXPECT_EQ(weights[0], weights[1]) << words[0];
  }
}

nlohmann::json bench_step(const Words& more) {
  const auto result =
      lockstep(Words{"bench", "step", "--model", "resnet50", "--device", "cuda", "--seconds", "0.2", "--json"} + more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

// One replica for each GPU, over all lanes; dropout draws the lanes' numbers.
TEST(Gpu, ReplicasHaveTheBitsOfLanes) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  const auto weights = [&](const std::string& form, const Words& more) {
    const auto result =
        lockstep(Words{"train", "imagenet", "--arch", "alexnet", "--size", "64", "--batch-size", "8", "--steps", "4",
                       "--lanes", "2", "--device", "cuda:0", "--parallel", form, "--out", dir / form} +
                 more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return final_of(dir / form).value("weights_sha256", "");
  };
  for (const Words& level : {Words{"--amp", "O0"}, Words{"--amp", "O1", "--dtype", "fp16"}}) {
    const std::string lanes = weights("ddp", level);
    EXPECT_FALSE(lanes.empty());
    EXPECT_EQ(weights("dp", level), lanes) << level[1];
  }
  const auto refused = lockstep({"train", "mnist", "--parallel", "dp", "--replicas", "2", "--lanes", "2", "--device",
                                 "cuda:0", "--out", dir / "refused"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("each replica has a GPU of its own, and here is 1"));
}

TEST(Gpu, BenchStepMeasuresItsMemoryToo) {
  LOCKSTEP_NEEDS_GPU();
  std::vector<double> peaks;
  // Of so many pixels that activations take more than what cuDNN's algorithms work in.
  const Words pixels = {"--size", "128", "--batch-size", "32"};
  for (const Words& precision : {Words{"--dtype", "fp32"}, Words{"--dtype", "fp16", "--amp", "O3"}}) {
    const auto found = bench_step(pixels + precision);
    EXPECT_EQ(found.at("device"), "cuda");
    EXPECT_GT(found.at("images_per_second").get<double>(), 0);
    peaks.push_back(found.at("device_peak_mb_all").get<double>());
  }
  EXPECT_GT(peaks[0], 25.6 * 4 * 2) << "fp32 weights and gradients";
  EXPECT_LT(peaks[1], peaks[0]) << "16 bits take less";
}

TEST(Gpu, BenchStepLoadsItsImages) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  write_class_folders(dir.path(), 3, 8);
  for (const Words& how : {Words{"--prefetch", "on"}, Words{"--prefetch", "off"}, Words{"--decode", "device"}}) {
    const auto found = bench_step(
        Words{"--size", "64", "--batch-size", "4", "--dtype", "fp16", "--amp", "O1", "--data", dir.path()} + how);
    EXPECT_GE(found.at("wait_ms").get<double>(), 0) << how[1];
  }
}

TEST(Gpu, EveryOptimizer) {
  LOCKSTEP_NEEDS_GPU();
  for (const char* name : {"adagrad", "adam", "adamw", "lamb", "lars", "nadam", "novograd", "rmsprop"}) {
    const TempDir dir;
    const Words with = {"--optimizer", name, "--lr", "0.001"};
    const auto gpu = lockstep(gpu_words(dir / "gpu", with));
    ASSERT_EQ(gpu.exit_code, 0) << name << ": " << gpu.err;
    const auto cpu = lockstep(train_words({"--steps", std::to_string(kSteps), "--out", dir / "cpu"}) + with);
    ASSERT_EQ(cpu.exit_code, 0) << name << ": " << cpu.err;
    const auto loss = [&](const char* run) { return final_of(dir / run).at("loss").get<double>(); };
    EXPECT_NEAR(loss("gpu"), loss("cpu"), 1e-2) << name;
  }
}

// Batches that the GPU normalises have the host's bits, and so have the weights.
TEST(Gpu, WhereImagesAreNormalisedDoesNotShow) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 16);
  const auto weights_of = [&](const Words& more) {
    const std::string run = dir / more[1];
    const auto result = lockstep(Words{"train", "imagenet", "--data", dir / "pictures", "--size", "64", "--lanes", "2",
                                       "--batch-size", "4", "--steps", "6", "--device", "cuda", "--out", run} +
                                 more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return final_of(run).at("weights_sha256").get<std::string>();
  };
  const std::string host = weights_of({"--normalize", "host"});
  EXPECT_EQ(weights_of({"--normalize", "device"}), host);
  EXPECT_EQ(weights_of({"--normalize", "auto", "--workers", "0"}), host);
}

// nvJPEG's pixels are a few levels off libjpeg's: the loss of the first step is near, before steps drive them apart.
TEST(Gpu, DecodesPictures) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 16);
  const auto run = [&](const std::string& decode) {
    return lockstep({"train", "imagenet", "--data", dir / "pictures", "--size", "64", "--lanes", "2", "--batch-size",
                     "4", "--steps", "1", "--device", "cuda", "--decode", decode, "--out", dir / decode});
  };
  const auto device = run("device"), host = run("host");
  if (device.err.find("liblockstep_nvjpeg.so") != std::string::npos) GTEST_SKIP() << device.err;
  ASSERT_EQ(device.exit_code, 0) << device.err;
  ASSERT_EQ(host.exit_code, 0) << host.err;
  const auto loss_of = [&](const std::string& decode) { return final_of(dir / decode).at("train_loss").get<double>(); };
  EXPECT_NEAR(loss_of("device"), loss_of("host"), 0.03);
  EXPECT_NE(device.out.find(" on the device, 0 on the host; nvJPEG "), std::string::npos) << device.out;
}

TEST(Gpu, ACheckpointIsEvaluatedOnEitherDevice) {
  LOCKSTEP_NEEDS_GPU();
  const TempDir dir;
  ASSERT_EQ(lockstep(gpu_words(dir / "run", {})).exit_code, 0);
  const auto loss_on = [&](const Words& device) {
    const auto result = lockstep(
        Words{"eval", "mnist", "--data", digits_folder(), "--load", (dir / "run") + "/checkpoints/last.pt", "--json"} +
        device);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("loss").get<double>();
  };
  const double gpu = loss_on({"--device", "cuda"});
  EXPECT_NEAR(gpu, loss_on({}), 1e-2);
  EXPECT_EQ(gpu, loss_on({"--device", "cuda:0"})) << "and it repeats its bits";
}

// The optimizer's moments go from one device to the other.
TEST(Gpu, ARunGoesOnOnTheOtherDevice) {
  LOCKSTEP_NEEDS_GPU();
  const Words with = {"--optimizer", "adamw", "--lr", "0.001", "--ema", "0.9"};
  const auto first = [&](const std::string& run, const char* device) {
    const auto result = lockstep(
        train_words({"--nproc", "1", "--steps", std::to_string(kSteps / 2), "--out", run, "--device", device}) + with);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  const TempDir dir;
  for (const bool to_gpu : {true, false}) {
    const std::string run = dir / (to_gpu ? "to" : "from");
    first(run, to_gpu ? "cpu" : "cuda");
    const auto result = lockstep({"train", "--resume", run, "--nproc", "1", "--steps", std::to_string(kSteps),
                                  "--device", to_gpu ? "cuda" : "cpu"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(steps_logged(run), first_steps(kSteps));
    EXPECT_NEAR(final_of(run).at("loss").get<double>(), final_of(finished_run(with)).at("loss").get<double>(), 1e-2);
  }
}

TEST(Gpu, AMachineOfOneIsToldWhatNcclLacks) {
  LOCKSTEP_NEEDS_GPU();
  const auto result = lockstep({"bench", "allreduce", "--backend", "nccl", "--nproc", "64", "--sizes", "1K"});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr("backend nccl: "));
}

}  // namespace
}  // namespace lockstep::e2e
