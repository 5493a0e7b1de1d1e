#include "lockstep/config/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lockstep/config/toml_file.h"

namespace lockstep::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Command parse(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> args;
  for (std::string word; in >> word;) args.push_back(word);
  return parse_command(args, 4);
}

TrainOptions train(const std::string& line) { return std::get<TrainOptions>(parse("train " + line)); }

std::string refusal(const std::string& line) {
  try {
    parse(line);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
    return error.what();
  }
  return "accepted";
}

TEST(CommandLine, TrainTakesEveryOption) {
  const auto o = train(
      "unet --data d --out o --load l.pt --nproc 2 --lanes 4 --batch-size 8 --epochs 3 --steps 100 --lr 0.1 --lr-min "
      "0.01 --optimizer sgd --momentum 0.9 --nesterov --schedule step --step-size 10 --gamma 0.5 --schedule-steps 90 "
      "--warmup 5 --weight-decay 1e-4 --clip 1 --clip-value 0.5 --ema 0.999 --shard-optimizer off --amp O1 --dtype "
      "fp16 --loss-scale 1024 --channels-last on --threads 2 "
      "--workers 0 --validation 10 --eval-every 50 --save-every 2epochs --keep 5 --seed 7 --deterministic off "
      "--device cpu --backend shm --timeout 30 --on-nan stop --detect-anomaly --quiet --pin --size 96 --scale-lr "
      "sqrt=16");
  EXPECT_EQ(o.recipe, "unet");
  EXPECT_EQ(o.size, 96);
  EXPECT_EQ(o.scale_lr, (LrScale{LrRule::kSqrt, 16}));
  EXPECT_EQ(o.data + o.out + o.load, "dol.pt");
  EXPECT_EQ(o.nproc * 100 + o.lanes * 10 + *o.batch_size, 248);
  EXPECT_EQ(o.epochs, 3);
  EXPECT_EQ(o.steps, 100);
  EXPECT_EQ(o.lr, 0.1);
  EXPECT_EQ(o.lr_min, 0.01);
  EXPECT_EQ(o.optimizer, OptimizerKind::kSgd);
  EXPECT_EQ(o.momentum, 0.9);
  EXPECT_TRUE(o.nesterov && o.quiet && o.pin && !o.deterministic);
  EXPECT_EQ(o.schedule, ScheduleKind::kStep);
  EXPECT_EQ(o.step_size, 10);
  EXPECT_EQ(o.gamma, 0.5);
  EXPECT_EQ(o.schedule_steps, 90);
  EXPECT_EQ(o.warmup, 5);
  EXPECT_EQ(o.weight_decay, 1e-4);
  EXPECT_EQ(o.clip, 1);
  EXPECT_EQ(o.clip_value, 0.5);
  EXPECT_EQ(o.ema, 0.999);
  EXPECT_EQ(o.shard_optimizer, ShardOptimizer::kOff);
  EXPECT_EQ(o.amp, AmpLevel::kO1);
  EXPECT_EQ(o.dtype, HalfType::kFp16);
  EXPECT_EQ(o.loss_scale, 1024);
  EXPECT_EQ(o.channels_last, ChannelsLast::kOn);
  EXPECT_EQ(o.threads, 2);
  EXPECT_EQ(o.workers, 0);
  EXPECT_EQ(o.validation, 10);
  EXPECT_EQ(o.eval_every, (Interval{.count = 50, .unit = Interval::Unit::kSteps}));
  EXPECT_EQ(o.save_every, (Interval{.count = 2, .unit = Interval::Unit::kEpochs}));
  EXPECT_EQ(o.keep, 5);
  EXPECT_EQ(o.seed, 7);
  EXPECT_EQ(o.backend, BackendKind::kShm);
  EXPECT_EQ(o.timeout, 30);
  EXPECT_EQ(o.on_nan, OnNan::kStop);
  EXPECT_TRUE(o.detect_anomaly);
}

TEST(CommandLine, OptionalValues) {
  EXPECT_EQ(train("mnist --amp").amp, AmpLevel::kAuto);
  EXPECT_EQ(train("--amp mnist").amp, AmpLevel::kAuto);
  EXPECT_EQ(train("mnist").amp, AmpLevel::kO0);
  EXPECT_FALSE(train("mnist").resume.has_value());
  EXPECT_EQ(train("mnist --resume").resume, "");
  EXPECT_EQ(train("mnist --resume runs/mnist-2").resume, "runs/mnist-2");
  EXPECT_EQ(train("mnist --nproc auto").nproc, 4);
  EXPECT_EQ(train("mnist --loss-scale dynamic").loss_scale, 0);
  EXPECT_EQ(train("mnist --preset paddle").preset, "paddle");
}

TEST(CommandLine, BadTrainLines) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"train", "train: RECIPE is missing"},
      {"train mnits", "mnits: unknown recipe; expected mnist, unet or imagenet; did you mean mnist?"},
      {"train mnist extra", "train: extra: one word too many"},
      {"train mnist --epoch 3", "--epoch: unknown option; did you mean --epochs?"},
      {"train mnist --nproc 3 --lanes 4", "--nproc 3 --lanes 4: each rank needs a power of two of lanes"},
      {"train mnist --nproc 0", "--nproc 0: expected a whole number from 1 to 64"},
      {"train mnist --nproc 65", "--nproc 65: expected"},
      {"train mnist --nproc 2:4", "--nproc 2:4: a range is not available yet"},
      {"train mnist --lanes -4", "--lanes -4: expected"},
      {"train mnist --epochs 0", "--epochs 0: expected"},
      {"train mnist --epochs", "--epochs"},
      {"train mnist --lr nan", "--lr nan: expected a number"},
      {"train mnist --lr -1", "--lr -1: expected a number"},
      {"train mnist --optimizer rmspropp",
       "--optimizer rmspropp: expected sgd, adagrad, adam, adamw, nadam, rmsprop, lamb, lars or novograd"},
      {"train mnist --amp 01", "--amp 01: did you mean O1, with the letter O?"},
      {"train mnist --amp o2", "--amp o2: did you mean O2, with the letter O?"},
      {"train mnist --amp O4", "--amp O4: expected O0, O1, O2, O3 or auto"},
      {"train mnist --amp O1 --keep-batchnorm-fp32", "--keep-batchnorm-fp32 goes with --amp O2 and O3"},
      {"train mnist --schedule cosin", "--schedule cosin: expected constant, step, multistep,"},
      {"train mnist --schedule multistep --milestones 9,3", "--milestones 9,3: expected whole numbers in ascending"},
      {"train mnist --schedule cosine --patience 3", "--patience: goes with --schedule plateau only"},
      {"train mnist --device gpu", "--device gpu: expected cpu or cuda"},
      {"train mnist --device cuda --backend shm", "--device cuda: goes with --backend nccl"},
      {"train mnist --backend nccl", "--backend nccl: goes with --device cuda only"},
      {"bench allreduce --backend tcp", "--backend tcp: expected auto, shm, single, gloo, mpi or hierarchical"},
      {"bench allreduce --sizes 1K,lots", "--sizes lots: expected"},
      {"bench allreduce --sizes 1K,,2K", "--sizes : expected"},
      {"bench allreduce --sizes 6", "--sizes 6: expected"},
      {"bench allreduce --sizes 99999G", "--sizes 99999G: expected"},
      {"bench allreduce --algorithm tree", "--algorithm tree: expected fold or ring"},
      {"bench allreduce --comm-dtype fp16", "--comm-dtype fp16: expected fp32 or bf16"},
      {"doctor now", "doctor: now: one word too many"},
      {"train mnist --max-restarts 3", "--max-restarts: not available yet"},
      {"train mnist --dashboard=8080", "--dashboard: not available yet"},
      {"train mnist --quiet=maybe", "--quiet"},
      {"train mnist --validation 100", "--validation 100: expected"},
      {"train mnist --config no/such.toml", "--config no/such.toml: No such file"},
      {"train mnist --out=", "--out"},
      {"train mnist --seed -1", "--seed -1: expected"},
      {"train mnist --timeout 1e400", "--timeout 1e400: expected"},
  };
  for (const auto& [line, expected] : cases) EXPECT_THAT(refusal(line), StartsWith(expected)) << line;
}

TEST(CommandLine, OtherCommands) {
  const auto eval = std::get<EvalOptions>(parse("eval mnist --load x.pt --nproc 2 --threads 1 --amp --json"));
  EXPECT_EQ(eval.recipe + eval.load, "mnistx.pt");
  EXPECT_TRUE(eval.json && eval.nproc == 2 && eval.threads == 1 && eval.amp == AmpLevel::kAuto);
  const auto step = std::get<BenchOptions>(parse(
      "bench step --model unet --size 96 --batch-size 4 --dtype bf16 --channels-last off --optimizer adamw --nproc "
      "2 --threads 1 --no-comm --amp O1 --json"));
  EXPECT_TRUE(step.model == BenchModel::kUnet && step.size == 96 && step.batch_size == 4 && step.no_comm && step.json);
  EXPECT_TRUE(step.dtype == BenchType::kBf16 && !step.channels_last && step.optimizer == BenchOptimizer::kAdamW);
  const auto data = std::get<BenchOptions>(parse("bench data some/dir --threads 2 --size 224 --batch-size 64 --json"));
  EXPECT_TRUE(data.kind == BenchKind::kData && data.data == "some/dir" && data.threads == 2 && data.batch_size == 64);
  const auto reduce = std::get<BenchOptions>(parse(
      "bench allreduce --backend gloo --sizes 1K,1M --algorithm ring --comm-dtype bf16 --nproc 4 --timeout 9 --json"));
  EXPECT_TRUE(reduce.backend == BackendKind::kGloo && reduce.algorithm == Algorithm::kRing);
  EXPECT_TRUE(reduce.comm_dtype == CommType::kBf16 && reduce.nproc == 4 && reduce.timeout == 9 && reduce.json);
  EXPECT_THAT(reduce.sizes, ElementsAre(1024, 1 << 20));
  EXPECT_EQ(std::get<BenchOptions>(parse_command(to_arguments(reduce), 4)).sizes, reduce.sizes);
  EXPECT_TRUE(std::get<DoctorOptions>(parse("doctor --json")).json);
  EXPECT_EQ(std::get<InspectOptions>(parse("inspect a.pt --json")).file, "a.pt");
  const auto launch = std::get<LaunchOptions>(parse("launch --nproc 3 train.py --nproc 7 -x"));
  EXPECT_EQ(launch.nproc, 3);
  EXPECT_THAT(launch.program, ElementsAre("train.py", "--nproc", "7", "-x"));
}

TEST(CommandLine, BadOtherLines) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "which command?"},
      {"trian mnist", "trian: unknown command; did you mean train?"},
      {"--epochs 3", "--epochs: unknown option"},
      {"predict unet", "predict: not available yet"},
      {"eval mnist", "eval: --load FILE is missing"},
      {"eval mnsit --load x", "mnsit: unknown recipe"},
      {"eval mnist --load x --jsn", "--jsn: unknown option; did you mean --json?"},
      {"bench", "bench: expected step, allreduce, optimizer, precision, startup or data"},
      {"bench optimizer --elements 0", "--elements 0: expected"},
      {"bench stpe", "bench stpe: expected step"},
      {"bench checkpoint", "bench checkpoint: not available yet"},
      {"bench allreduce --model unet", "--model: unknown option"},
      {"bench data", "bench data: DIR is missing"},
      {"bench step x", "bench step: x: one word too many"},
      {"inspect", "inspect: FILE is missing"},
      {"inspect a b", "inspect: b: one word too many"},
      {"launch", "launch: PROGRAM is missing"},
      {"launch --nporc 3 prog", "--nporc: unknown option; did you mean --nproc?"},
  };
  for (const auto& [line, expected] : cases) EXPECT_THAT(refusal(line), StartsWith(expected)) << line;
}

TEST(CommandLine, HelpAndVersion) {
  for (const char* line : {"--help", "-h", "help", "train --help", "help train", "train mnist --help", "eval -h",
                           "bench --help", "bench step --help", "inspect --help", "launch --help"}) {
    EXPECT_THAT(std::get<HelpCommand>(parse(line)).text, HasSubstr("Usage: lockstep")) << line;
  }
  EXPECT_TRUE(std::holds_alternative<VersionCommand>(parse("--version")));
  EXPECT_TRUE(std::holds_alternative<LaunchOptions>(parse("launch prog --help")));
}

TEST(CommandLine, ArgumentsReadBackTheSame) {
  for (const char* line :
       {"mnist", "unet --amp --dtype fp16 --loss-scale 8 --resume runs/unet-3 --nproc 2 --lanes 8 --quiet --lr 0.1",
        "imagenet --arch mobilenet_v2 --size 32 --scale-lr linear --data=/a/b --eval-every 3epochs --save-every 100 "
        "--seed 9223372036854775807 --deterministic off "
        "--optimizer adamw --validation 12.5 --workers 0 --global-batch-size 64"}) {
    const TrainOptions options = train(line);
    const auto args = to_arguments(options);
    const auto again = std::get<TrainOptions>(parse_command(args, 1));
    EXPECT_EQ(to_arguments(again), args);
    EXPECT_EQ(to_toml(again), to_toml(options));
    EXPECT_EQ(again.resume, options.resume);
  }
  EXPECT_THAT(to_arguments(train("mnist --epochs 3 --quiet --amp")),
              ElementsAre("train", "mnist", "--epochs=3", "--amp=auto", "--quiet"));
  const auto bench = std::get<BenchOptions>(parse("bench data d --threads 2 --json"));
  EXPECT_THAT(to_arguments(bench), ElementsAre("bench", "data", "d", "--threads=2", "--json"));
  const auto network = std::get<EvalOptions>(parse("eval imagenet --load x --arch resnet18 --size 32"));
  EXPECT_THAT(to_arguments(network), ElementsAre("eval", "imagenet", "--load=x", "--arch=resnet18", "--size=32"));
  EXPECT_THROW(parse("eval mnist --load x --arch resnet18"), ConfigError);
  const auto eval = std::get<EvalOptions>(parse("eval mnist --load x"));
  EXPECT_THAT(to_arguments(eval), ElementsAre("eval", "mnist", "--load=x"));
  EXPECT_THAT(to_arguments(std::get<InspectOptions>(parse("inspect f"))), ElementsAre("inspect", "f"));
}

TEST(CommandLine, TheCommandLineWinsOverTheFile) {
  std::string folder = testing::TempDir() + "/config-XXXXXX";
  const std::string path = std::string(mkdtemp(folder.data())) + "/run.toml";
  std::ofstream(path) << "recipe = 'unet'\nepochs = 3\nlr = 1\nbatch-size = 4\namp = 'O1'\nquiet = true\n";
  const auto o = train("--lr 2 --global-batch-size 8 --config " + path);
  EXPECT_EQ(o.recipe, "unet");
  EXPECT_EQ(o.epochs, 3);
  EXPECT_EQ(o.lr, 2.0);
  EXPECT_EQ(o.amp, AmpLevel::kO1);
  EXPECT_TRUE(o.quiet);
  EXPECT_FALSE(o.batch_size.has_value());
  EXPECT_EQ(o.global_batch_size, 8);
  EXPECT_EQ(train("mnist --config " + path).recipe, "mnist");
  std::ofstream(path) << "epochs = 'ten'\n";
  EXPECT_THAT(refusal("train mnist --config " + path), HasSubstr(path + ": --epochs ten: expected"));
}

TEST(CommandLine, ARunsOwnConfigRepeatsIt) {
  std::string folder = testing::TempDir() + "/config-XXXXXX";
  const std::string path = std::string(mkdtemp(folder.data())) + "/config.toml";
  const auto options = train("mnist --nproc 2 --lanes 4 --amp --loss-scale 4 --seed 9223372036854775807");
  std::ofstream(path) << to_toml(options);
  EXPECT_EQ(to_arguments(train("--config " + path)), to_arguments(options));
}

TEST(ResumedConfig, HoldsWhereNothingElseSpeaks) {
  const std::string path = testing::TempDir() + "resumed." + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "recipe = \"mnist\"\nlr = 0.3\nseed = 9\nsteps = 12\namp = \"O1\"\n";
  const auto command = parse_command({"train", "mnist", "--resume", "x", "--seed", "4"}, 2, path);
  const auto& options = std::get<TrainOptions>(command);
  EXPECT_EQ(options.lr, 0.3);
  EXPECT_EQ(options.seed, 4);
  EXPECT_EQ(options.amp, AmpLevel::kO1);
  EXPECT_FALSE(options.steps) << "--steps belongs to one start";
  unlink(path.c_str());
}

}  // namespace
}  // namespace lockstep::config
