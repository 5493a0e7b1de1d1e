// What the commands beside train print: one JSON value on standard output and nothing else, for scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/testing/gpu.h"
#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

nlohmann::json json_of(const Words& words) {
  const auto result = lockstep(words + Words{"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  auto value = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(value.is_discarded()) << result.out;
  return value;
}

std::string last_checkpoint() { return finished_run() + "/checkpoints/last.pt"; }

TEST(Eval, GivesTheMetricsOfTheRunAtAnyNumberOfRanks) {
  for (const char* nproc : {"1", "2"}) {
    auto found = json_of({"eval", "mnist", "--data", digits_folder(), "--load", last_checkpoint(), "--nproc", nproc});
    const auto final = final_of(finished_run());
    EXPECT_EQ(found.at("loss"), final.at("loss"));
    EXPECT_EQ(found.at("step"), kSteps);
    EXPECT_EQ(found.at("file"), last_checkpoint());
    EXPECT_EQ(found.at("samples"), 64);
    EXPECT_EQ(found.at("weights"), "model");
    for (const char* name : {"loss", "step", "file", "weights", "samples"}) found.erase(name);
    EXPECT_EQ(found, final.at("metrics")) << "the rest";
  }
}

TEST(Inspect, ListsWhatACheckpointHolds) {
  const auto all = json_of({"inspect", last_checkpoint()});
  const auto& weight = all.at("model/conv1.weight");
  EXPECT_EQ(weight.at("dtype"), "float32");
  EXPECT_EQ(weight.at("shape"), nlohmann::json({20, 1, 5, 5}));
  EXPECT_EQ(weight.at("sha256").get<std::string>().size(), 64u);
  for (const std::string part : {"model", "optimizer", "amp", "scheduler", "sampler", "rng", "meta"}) {
    EXPECT_TRUE(std::any_of(all.items().begin(), all.items().end(), [&](const auto& item) {
      return item.key() == part || item.key().rfind(part + "/", 0) == 0;
    })) << part;
  }
}

TEST(Commands, OutputThatIsLostIsAnError) {
  for (const Words& words : {Words{"inspect", last_checkpoint(), "--json"},
                             Words{"eval", "mnist", "--data", digits_folder(), "--load", last_checkpoint()}}) {
    std::string line;
    for (const auto& word : lockstep_command(words).command) line += word + ' ';
    const auto result = Program({.command = {"/bin/sh", "-c", line + ">/dev/full"}}).wait();
    EXPECT_EQ(result.exit_code, 74) << words[0];
    EXPECT_NE(result.err.find("standard output"), std::string::npos) << result.err;
  }
}

TEST(BenchStep, MeasuresLeNet) {
  const auto row =
      json_of({"bench", "step", "--model", "lenet", "--nproc", "2", "--batch-size", "2", "--seconds", "0.3"});
  EXPECT_EQ(row.at("model"), "lenet");
  EXPECT_EQ(row.at("ranks"), 2);
  EXPECT_EQ(row.at("parameters"), 20350);
  EXPECT_GT(row.at("step_ms").get<double>(), 0);
  EXPECT_TRUE(std::isfinite(row.at("images_per_second").get<double>()));
}

TEST(BenchStep, MeasuresAtALevelForAsLongAsItIsTold) {
  const auto row = json_of({"bench", "step", "--model", "lenet", "--batch-size", "2", "--amp", "O2", "--dtype", "fp16",
                            "--deterministic", "on", "--seconds", "0.05"});
  EXPECT_EQ(row.at("device"), "cpu");
  EXPECT_GT(row.at("images_per_second").get<double>(), 0);
  EXPECT_FALSE(row.contains("device_peak_mb_all"));
}

TEST(BenchStep, ReplicasHaveTheirSamplesInOneProcess) {
  const auto row =
      json_of({"bench", "step", "--model", "lenet", "--batch-size", "2", "--replicas", "3", "--seconds", "0.05"});
  EXPECT_TRUE(row.at("ranks") == 1 && row.at("replicas") == 3) << row;
  EXPECT_NEAR(row.at("images_per_second").get<double>(), 6e3 / row.at("step_ms").get<double>(), 1e-3);
  EXPECT_GT(row.at("cpu_cores_a_process").get<double>(), 0);
  const auto refused = lockstep({"bench", "step", "--replicas", "2", "--data", "photos"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--replicas: is of one batch in memory"), std::string::npos) << refused.err;
}

TEST(BenchStep, WithoutAGpuIsToldSo) {
  if (testing_support::why_no_gpu().empty()) GTEST_SKIP() << "there is one";
  const auto result = lockstep({"bench", "step", "--model", "lenet", "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find(testing_support::why_no_gpu()), std::string::npos) << result.err;
}

TEST(BenchStep, WithoutCommunicationNothingIsReduced) {
  const Words step = {"bench", "step", "--model", "lenet", "--nproc", "2", "--batch-size", "1", "--seconds", "0.3"};
  const auto with = [&](const char* flag) {
    Words words = step;
    words.push_back(flag);
    return json_of(words);
  };
  EXPECT_EQ(with("--no-comm").at("reduced_bytes"), 0);
  const auto both = with("--overhead");
  EXPECT_EQ(both.at("reduced_bytes"), 20350 * 4);
  EXPECT_EQ(both.at("reduced_bytes_without"), 0);
}

TEST(BenchForms, EachFormIsMeasured) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::pair<Words, double> forms[] = {{{"ddp", "--nproc", "2"}, 0.08},
                                            {{"sharded", "--nproc", "2"}, 0.08},
                                            {{"dp", "--replicas", "3"}, 0},
                                            {{"pipeline", "--nproc", "3", "--micro-batches", "2"}, 0.01},
                                            {{"pipeline-ddp", "--nproc", "4"}, 0.001},
                                            {{"tensor", "--nproc", "2"}, 0.08},
                                            {{"server", "--nproc", "3"}, 0.08}};
  for (const auto& [words, sent] : forms) {
    const auto row = json_of(
        Words{"bench", "forms", "--model", "lenet", "--batch-size", "24", "--seconds", "0.05", "--form"} + words);
    EXPECT_EQ(row.at("form"), words[0]);
    EXPECT_GT(row.at("step_ms").get<double>(), 0) << row;
    EXPECT_GE(row.at("sent_mb").get<double>(), sent) << row;
    EXPECT_GT(row.at("pss_mb_all").get<double>(), 0) << row;
  }
  const auto divided = json_of({"bench", "forms", "--form", "tensor", "--model", "alexnet", "--size", "64",
                                "--batch-size", "2", "--nproc", "2", "--seconds", "0.05"});
  EXPECT_GT(divided.at("sent_mb").get<double>(), 0) << divided;
}

TEST(BenchForms, WhatDoesNotGoTogetherIsNamed) {
  const std::pair<Words, const char*> lines[] = {
      {{"dp", "--nproc", "2"}, "--form dp: has replicas in one process"},
      {{"ddp", "--replicas", "2"}, "--replicas: goes with --form dp"},
      {{"pipeline-ddp", "--nproc", "3"}, "3 processes are no two pipelines"},
      {{"pipeline", "--nproc", "4"}, "pipeline: 4 stages of 3 layers"},
      {{"ddp", "--nproc", "3", "--batch-size", "8"}, "--batch-size 8: --form ddp divides it by 3"},
      {{"server"}, "--form server: needs two processes"}};
  for (const auto& [words, text] : lines) {
    const auto result = lockstep(Words{"bench", "forms", "--model", "lenet", "--form"} + words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << text << '\n' << result.err;
  }
  const auto unet = lockstep({"bench", "forms", "--model", "unet", "--form", "tensor", "--nproc", "2"});
  EXPECT_EQ(unet.exit_code, 2);
  EXPECT_NE(unet.err.find("--form tensor: unet ends with no Linear layer"), std::string::npos) << unet.err;
}

TEST(BenchAllreduce, MeasuresTheSizesThatAreAsked) {
  const auto rows = json_of({"bench", "allreduce", "--backend", "shm", "--sizes", "1K,64K", "--nproc", "2"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("bytes"), 1 << 10);
  EXPECT_EQ(rows[1].at("bytes"), 1 << 16);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("backend"), "shm");
    EXPECT_EQ(row.at("ranks"), 2);
    for (const char* name : {"seconds", "algbw_gbps", "busbw_gbps", "memory_gbps", "of_memory"}) {
      EXPECT_GT(row.at(name).get<double>(), 0) << name;
    }
  }
}

TEST(BenchAllreduce, MeasuresSharedMemoryAndGlooOverAllCores) {
  LOCKSTEP_LONG_TEST_IF(true);
  const auto rows = json_of({"bench", "allreduce", "--sizes", "1K,64K"});
  ASSERT_EQ(rows.size(), 4u);
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(rows[k].at("backend"), k < 2 ? "shm" : "gloo");
    EXPECT_EQ(rows[k].at("ranks"), std::clamp(usable_cores(), 2, kMaxLocalRanks));
    EXPECT_EQ(rows[k].at("bytes"), k % 2 == 0 ? 1 << 10 : 1 << 16);
  }
  const auto ring = json_of({"bench", "allreduce", "--sizes", "1K", "--algorithm", "ring", "--nproc", "3"});
  ASSERT_EQ(ring.size(), 2u);
  EXPECT_EQ(ring[1].at("ranks"), 3);
}

TEST(BenchAllreduce, AWorldOfOneHasNothingToCompare) {
  const auto rows = json_of({"bench", "allreduce", "--sizes", "4", "--nproc", "1"});
  EXPECT_EQ(rows.at(0).at("backend"), "single");
  EXPECT_FALSE(rows.at(0).contains("of_memory"));
}

TEST(BenchOptimizer, CountsBytes) {
  const auto rows = json_of({"bench", "optimizer", "--elements", "64"});
  ASSERT_EQ(rows.size(), 22u);
  EXPECT_EQ(rows[2].at("optimizer"), "adam");
  EXPECT_EQ(rows[2].at("fewest_bytes"), 28);
  EXPECT_EQ(rows[13].at("weights"), "bf16 with fp32 masters");
  EXPECT_EQ(rows[13].at("fewest_bytes"), 28);
  for (const auto& row : rows) EXPECT_GT(row.at("ratio").get<double>(), 0) << row;
}

TEST(BenchPipeline, TellsIdleTimeMemoryAndBytes) {
  const TempDir dir;
  const auto rows = json_of({"bench", "pipeline", "--nproc", "2", "--micro-batches", "4", "--rows", "8", "--width", "8",
                             "--seconds", "0.05", "--trace", dir / "trace.json"});
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("stages"), 2);
    EXPECT_DOUBLE_EQ(row.at("bubble").get<double>(), 0.2);
    EXPECT_EQ(row.at("most_held"), row.at("schedule") == "gpipe" ? 4 : 2);
    EXPECT_GT(row.at("idle").get<double>(), 0);
    EXPECT_LT(row.at("idle").get<double>(), 1);
  }
  const auto events = nlohmann::json::parse(read_file(dir / "trace.json")).at("traceEvents");
  const auto computed =
      std::count_if(events.begin(), events.end(), [](const auto& each) { return each.at("ph") == "X"; });
  EXPECT_EQ(computed, 2 * 2 * 8) << "of two schedules and stages four micro-batches, forwards and backwards";
  EXPECT_EQ(lockstep({"bench", "pipeline", "--nproc", "2", "--layers", "1"}).exit_code, 2);
}

// Eight layers on four stages: two a stage, three times asleep for each of two micro-batches, five stages' times in
// all.
TEST(BenchPipeline, StagesMaySleepAsIfDevicesComputed) {
  const auto rows = json_of({"bench", "pipeline", "--nproc", "4", "--micro-batches", "2", "--rows", "8", "--width", "8",
                             "--layer-ms", "2", "--seconds", "0.05"});
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) EXPECT_GE(row.at("step_ms").get<double>(), 5 * 2 * 3 * 2) << row;
}

TEST(Doctor, FindsSharedMemoryWell) {
  const auto found = json_of({"doctor"});
  EXPECT_GE(found.at("machine").at("cores").get<int>(), 1);
  EXPECT_EQ(found.at("software").at("libtorch"), "2.11.0");
  const auto& shm = found.at("transports").at(0);
  EXPECT_EQ(shm.at("name"), "shm");
  EXPECT_EQ(shm.at("status"), "ok") << shm;
  EXPECT_GT(shm.at("algbw_gbps_1m").get<double>(), 0);
}

TEST(Doctor, TellsPeopleTheSame) {
  const auto result = lockstep({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\nshm         ok: "), std::string::npos) << result.out;
  EXPECT_EQ(result.err, "");
}

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kFrontHasItsRuntime = false;
#else
constexpr bool kFrontHasItsRuntime = true;
#endif

// As in a conda environment whose folder is in LD_LIBRARY_PATH.
TEST(Doctor, NamesALibstdcxxThatIsTooOld) {
  if (!kFrontHasItsRuntime) GTEST_SKIP() << "lockstep brings its C++ runtime only without sanitizers";
  const TempDir dir;
  const std::string library = dir / "libstdc++.so.6";
  write_file(dir / "old.map", "GLIBCXX_3.4 { global: f; local: *; };\nCXXABI_1.3 {};\n");
  write_file(dir / "old.c", "int f(void) { return 1; }\n");
  const auto made = Program({.command = {"/usr/bin/env", "cc", "-shared", "-fPIC", "-Wl,-soname,libstdc++.so.6",
                                         "-Wl,--version-script=" + (dir / "old.map"), "-o", library, dir / "old.c"}})
                        .wait();
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Words old = {"/usr/bin/env", "LD_LIBRARY_PATH=" + dir.path()};
  const auto result = Program({.command = old + lockstep_command({"doctor"}).command}).wait();
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_THAT(result.out,
              ::testing::HasSubstr("misfit      libstdc++.so.6: the loader finds " + library + ", which is too old"));
  EXPECT_THAT(result.out, ::testing::HasSubstr("take " + dir.path() + " out of LD_LIBRARY_PATH"));
}

TEST(Version, IsOneLine) {
  const auto result = lockstep({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.rfind("lockstep ", 0), 0u) << result.out;
}

// Real PyTorch and `inspect` must see the same bytes in a checkpoint.
TEST(Interop, PyTorchSeesTheBytesThatInspectSees) {
  const std::string python = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  const auto run_python = [&](const std::string& code) {
    return Program({.command = {"/usr/bin/env", python, "-c", code}}).wait();
  };
  if (run_python("import torch").exit_code != 0) {
    GTEST_SKIP() << python << " has no torch; name one that has in LOCKSTEP_PYTORCH_PYTHON";
  }
  const auto result = run_python(
      "import torch, hashlib, json\n"
      "root = torch.load('" +
      last_checkpoint() +
      "', weights_only=True)\n"
      "sha = lambda t: hashlib.sha256(bytes(t.contiguous().flatten().view(torch.uint8).tolist())).hexdigest()\n"
      "print(json.dumps({'keys': sorted(root), 'model': {n: sha(t) for n, t in root['model'].items()}}))\n");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto seen = nlohmann::json::parse(result.out);
  EXPECT_EQ(seen.at("keys"), nlohmann::json({"amp", "meta", "model", "optimizer", "rng", "sampler", "scheduler"}));
  const auto all = json_of({"inspect", last_checkpoint()});
  EXPECT_EQ(seen.at("model").size(), 6u);
  for (const auto& [name, sha] : seen.at("model").items()) EXPECT_EQ(all.at("model/" + name).at("sha256"), sha) << name;
}

}  // namespace
}  // namespace lockstep::e2e
