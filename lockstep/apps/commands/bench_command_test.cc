#include "lockstep/apps/commands/bench_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/words_of.h"
#include "lockstep/config/values.h"
#include "lockstep/world/options/backend_options.h"

namespace lockstep::apps {
namespace {

using testing_support::words_of;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

std::vector<std::string> backend_names() {
  std::vector<std::string> names = {"auto"};
  names.insert(names.end(), kBackendNames.begin(), kBackendNames.end());
  return names;
}

BenchOptions bench(const std::string& line) {
  BenchCommand command;
  EXPECT_EQ(command.read(words_of(line)), std::nullopt);
  return command.options();
}

std::vector<std::string> options_of(BenchKind kind) {
  BenchOptions options;
  options.kind = kind;
  config::OptionSet rows;
  options.declare(rows);
  std::vector<std::string> names;
  for (const auto& row : rows.rows()) names.push_back(row.name);
  return names;
}

TEST(BenchCommand, EachKindHasItsOwnOptions) {
  EXPECT_THAT(
      options_of(BenchKind::kStep),
      UnorderedElementsAre("model", "size", "batch-size", "dtype", "channels-last", "optimizer", "nproc", "threads",
                           "no-comm", "overhead", "amp", "data", "workers", "device", "deterministic", "seconds",
                           "prefetch", "decode", "graph", "replicas", "trace", "json"));
  EXPECT_THAT(options_of(BenchKind::kAllreduce), UnorderedElementsAre("backend", "sizes", "algorithm", "comm-dtype",
                                                                      "interface", "nproc", "timeout", "json"));
  EXPECT_THAT(options_of(BenchKind::kForms),
              UnorderedElementsAre("form", "model", "size", "batch-size", "micro-batches", "replicas", "nproc",
                                   "seconds", "json"));
  EXPECT_THAT(options_of(BenchKind::kStartup), UnorderedElementsAre("nproc", "json"));
  EXPECT_THAT(options_of(BenchKind::kPrecision), UnorderedElementsAre("json"));
  EXPECT_THAT(options_of(BenchKind::kOptimizer), UnorderedElementsAre("elements", "threads", "json"));
  EXPECT_THAT(options_of(BenchKind::kData),
              UnorderedElementsAre("data", "size", "batch-size", "workers", "threads", "epochs", "seconds", "dtype",
                                   "channels-last", "augment", "exif", "fast-decode", "json"));
}

TEST(BenchCommand, ReadsEachKind) {
  const auto step = bench(
      "step --model unet --size 96 --batch-size 4 --dtype bf16 --channels-last off --optimizer adamw --nproc 2 "
      "--threads 1 --no-comm --amp O1 --json");
  EXPECT_TRUE(step.model == "unet" && step.size == 96 && step.batch_size == 4 && step.no_comm && step.json);
  EXPECT_TRUE(step.dtype == BenchType::kBf16 && !step.channels_last && step.optimizer == "adamw");
  EXPECT_EQ(step.processes.nproc, 2);
  EXPECT_EQ(step.replicas, 1);
  EXPECT_EQ(bench("step --replicas 4").replicas, 4);
  EXPECT_TRUE(step.device == train::DeviceKind::kCpu && !step.deterministic && step.prefetch);
  const auto on_gpu =
      bench("step --model resnet50 --device cuda --deterministic on --seconds 2 --data d --prefetch off");
  EXPECT_TRUE(on_gpu.device == train::DeviceKind::kCuda && on_gpu.deterministic && !on_gpu.prefetch);
  EXPECT_EQ(on_gpu.loading.seconds, 2);
  EXPECT_EQ(bench("step --data d --decode device").decode, train::DecodeOn::kDevice);
  const auto data =
      bench("data some/dir --threads 2 --size 96 --batch-size 8 --dtype bf16 --augment strong --epochs 3");
  EXPECT_TRUE(data.kind == BenchKind::kData && data.loading.path == "some/dir" && data.loading.batch_size == 8);
  EXPECT_TRUE(data.loading.threads == 2 && data.loading.size == 96 && data.loading.epochs == 3);
  EXPECT_TRUE(data.loading.dtype == BenchType::kBf16 && data.loading.images.augment == datasets::Augment::kStrong);
  const auto fed = bench("step --data some/dir --workers 1");
  EXPECT_TRUE(fed.loading.path == "some/dir" && fed.loading.workers == 1);
  const auto reduce =
      bench("allreduce --backend gloo --sizes 1K,1M --algorithm ring --comm-dtype bf16 --nproc 4 --timeout 9 --json");
  EXPECT_TRUE(reduce.comm.backend == "gloo" && reduce.algorithm == "ring" && reduce.comm.timeout == 9);
  EXPECT_EQ(reduce.comm_dtype, parallel::CommType::kBf16);
  EXPECT_THAT(reduce.sizes, ElementsAre(1024, 1 << 20));
  const auto stages =
      bench("pipeline --nproc 4 --micro-batches 8 --rows 3 --width 4 --layers 5 --recompute --trace t.json");
  EXPECT_TRUE(stages.kind == BenchKind::kPipeline && stages.processes.nproc == 4 && stages.pipeline.recompute);
  EXPECT_TRUE(stages.pipeline.micro_batches == 8 && stages.pipeline.rows == 3 && stages.pipeline.trace == "t.json");
  const auto plain = bench("allreduce");
  EXPECT_TRUE(plain.comm.backend == "auto" && plain.algorithm == "fold" && plain.processes.nproc == 0) << "a core each";
}

TEST(BenchCommand, ReadsBackTheSame) {
  for (const char* line : {"data d --threads=2 --json", "allreduce --backend=gloo --sizes=4,1024", "step --no-comm"}) {
    BenchCommand command;
    command.read(words_of(line));
    EXPECT_EQ(command.arguments(), words_of(cat("bench ", line)));
  }
}

std::string refused(const std::string& line) {
  return testing_support::refusal([&] { BenchCommand().read(words_of(line)); });
}

TEST(BenchCommand, BadLines) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "bench: expected step, allreduce, optimizer, precision, startup, data, checkpoint, pipeline or forms"},
      {"stpe", "bench stpe: expected step"},
      {"optimizer --elements 0", "--elements 0: expected"},
      {"allreduce --model unet", "--model: unknown option"},
      {"data", "bench data: DIR is missing"},
      {"data d --workers 1 --threads 1", "--workers and --threads: give only one of them"},
      {"data d --epochs 1 --seconds 1", "--epochs and --seconds: give only one of them"},
      {"step --workers 1", "--workers: goes with --data"},
      {"step --prefetch off", "--prefetch off: goes with --data"},
      {"step --decode device", "--decode device: goes with --data"},
      {"step --data d --decode device --prefetch off", "--decode device and --prefetch off: give only one"},
      {"step --device tpu", "--device tpu: expected cpu, cuda, or cuda:N"},
      {"step x", "bench step: x: one word too many"},
      {"step --model vgg", "--model vgg: expected alexnet, lenet, resnet18, resnet50, unet or mobilenet_v2"},
      {"allreduce --backend tcp", cat("--backend tcp: expected ", config::either(backend_names()))},
      {"allreduce --backend nccl --algorithm ring", "--algorithm ring: is of messages, which go over the CPUs"},
      {"allreduce --sizes 1K,lots", "--sizes lots: expected"},
      {"allreduce --sizes 1K,,2K", "--sizes : expected"},
      {"allreduce --sizes 6", "--sizes 6: expected"},
      {"allreduce --sizes 99999G", "--sizes 99999G: expected"},
      {"allreduce --algorithm tree", "--algorithm tree: expected fold or ring"},
      {"allreduce --comm-dtype fp16", "--comm-dtype fp16: expected fp32 or bf16"},
  };
  for (const auto& [line, expected] : cases) {
    EXPECT_THAT(refused(line), StartsWith(expected)) << line;
  }
}

TEST(BenchCommand, HelpListsTheOptionsOfEachKind) {
  const std::string text = BenchCommand().read({"step", "--help"}).value_or("");
  EXPECT_EQ(BenchCommand().read({"-h"}), text);
  EXPECT_THAT(text, HasSubstr("--model alexnet|lenet|resnet18|resnet50|unet|mobilenet_v2"));
  EXPECT_THAT(text, HasSubstr("bench data DIR"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(BenchCommand, SizesHaveBinaryPrefixes) {
  EXPECT_THAT(read_sizes("sizes", "4096"), testing::ElementsAre(4096));
  EXPECT_THAT(read_sizes("sizes", "1K,1M,100M,64G"),
              testing::ElementsAre(1 << 10, 1 << 20, 100 << 20, int64_t{1} << 36));
  EXPECT_EQ(write_sizes(read_sizes("sizes", "4,1K")), "4,1024");
  for (const char* bad : {"", "K", "1k", "1KB", "-4", "0", "3", "65G", "1K,", "99999999999999999999"}) {
    EXPECT_THROW(read_sizes("sizes", bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace lockstep::apps
