// Learning rates of whole runs: as metrics.jsonl has them, after a resume, and as PyTorch goes on from a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

// Of the records of this kind, in their order.
std::vector<double> logged(const std::string& run, const std::string& kind, const std::string& name) {
  std::vector<double> values;
  for (const auto& record : records_of(run, kind)) values.push_back(record.at(name));
  return values;
}

void run_on(const Words& words) {
  const auto result = lockstep(train_words(words));
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

// By such a threshold the losses are better at first, and from step 8 on no more. The test data are for the run's end.
const Words kPlateau = {"--schedule",
                        "plateau",
                        "--patience",
                        "0",
                        "--plateau-factor",
                        "0.5",
                        "--threshold-mode",
                        "abs",
                        "--threshold",
                        "0.6",
                        "--cooldown",
                        "1",
                        "--lr",
                        "0.1",
                        "--warmup",
                        "2",
                        "--eval-every",
                        "2",
                        "--validation",
                        "20"};

TEST(Schedule, APlateauGoesOnAfterAnyStepOnAnyNumberOfRanks) {
  const std::string& whole = finished_run(kPlateau);
  const auto rates = logged(whole, "train", "lr");
  ASSERT_EQ(rates.size(), static_cast<size_t>(kSteps));
  EXPECT_EQ(rates[0], 0.05) << "the warm-up";
  EXPECT_EQ(rates[7], 0.1);
  EXPECT_EQ(rates[8], 0.05) << nlohmann::json(logged(whole, "eval", "loss"));

  const TempDir dir;
  const std::string run = dir / "run";
  run_on(kPlateau + Words{"--nproc", "2", "--steps", "5", "--out", run});
  run_on({"--nproc", "4", "--steps", "8", "--resume", run});  // ends where an evaluation is due
  run_on({"--nproc", "1", "--steps", std::to_string(kSteps), "--resume", run});
  EXPECT_EQ(outcome_of(run), outcome_of(whole));
  EXPECT_EQ(logged(run, "train", "lr"), rates);
}

TEST(Schedule, ByEpochsARateLastsForOne) {
  const auto rates = logged(finished_run({"--schedule", "multistep", "--milestones", "1,2", "--gamma", "0.5",
                                          "--schedule-unit", "epochs", "--lr", "0.1"}),
                            "train", "lr");
  ASSERT_EQ(rates.size(), 3u * kStepsPerEpoch);
  for (size_t i = 0; i < rates.size(); ++i) EXPECT_EQ(rates[i], 0.1 / (1 << i / kStepsPerEpoch)) << i;
}

TEST(Schedule, WhatDoesNotGoTogetherIsOneLine) {
  const std::pair<Words, std::string> table[] = {
      {{"--gamma", "0.5"}, "--gamma: goes with --schedule step, multistep or exponential only, this run's is cosine"},
      {{"--schedule", "plateau", "--eval-every", "0"}, "--eval-every 0 makes none"},
      {{"--schedule", "plateau", "--plateau-metric", "dice"}, "--plateau-metric dice: mnist has loss and accuracy"},
      {{"--schedule", "multistep", "--milestones", "3", "--warmup", "3"}, "--milestones 3: not after the warm-up"}};
  for (const auto& [words, line] : table) {
    const TempDir dir;
    const auto result = lockstep(train_words(words + Words{"--out", dir / "run"}));
    EXPECT_EQ(result.exit_code, 2) << line;
    EXPECT_THAT(result.err, HasSubstr(line));
  }
}

struct Case {
  Words words;
  std::string pytorch;  // the scheduler, made for optimizer o
};

const std::vector<Case> kCases = {
    {{"--schedule", "constant", "--warmup", "0"}, "ConstantLR(o, 1.0, 0)"},
    {{"--schedule", "step", "--step-size", "4", "--warmup", "0"}, "StepLR(o, 4)"},
    {{"--schedule", "step", "--step-size", "3", "--warmup", "4"},
     "SequentialLR(o, [L.LinearLR(o, 0.25, total_iters=3), L.StepLR(o, 3)], [4])"},
    {{"--schedule", "cosine", "--warmup", "8", "--epochs", "5"},
     "SequentialLR(o, [L.LinearLR(o, 0.125, total_iters=7), L.CosineAnnealingLR(o, 12)], [8])"},
    {{"--schedule", "multistep", "--milestones", "2,7,9", "--gamma", "0.5", "--warmup", "0"},
     "MultiStepLR(o, [2, 7, 9], 0.5)"},
    {{"--schedule", "multistep", "--milestones", "7,9", "--gamma", "0.5", "--warmup", "4"},
     "SequentialLR(o, [L.LinearLR(o, 0.25, total_iters=3), L.MultiStepLR(o, [3, 5], 0.5)], [4])"},
    {{"--schedule", "exponential", "--gamma", "0.9", "--warmup", "0"}, "ExponentialLR(o, 0.9)"},
    {{"--schedule", "cosine", "--warmup", "0", "--lr-min", "0.01", "--epochs", "5"}, "CosineAnnealingLR(o, 20, 0.01)"},
    {{"--schedule", "cosine-restarts", "--restart-every", "3", "--restart-mult", "2", "--warmup", "0"},
     "CosineAnnealingWarmRestarts(o, 3, 2)"},
    {{"--schedule", "onecycle", "--max-lr", "0.5", "--epochs", "5"},
     "OneCycleLR(o, max_lr=0.5, total_steps=20, cycle_momentum=False)"},
    {{"--schedule", "polynomial", "--power", "2", "--warmup", "0", "--epochs", "5"}, "PolynomialLR(o, 20, 2.0)"},
    {{"--schedule", "plateau", "--patience", "0", "--threshold", "0.2", "--eval-every", "1", "--warmup", "0"},
     "ReduceLROnPlateau(o)"}};

// For each [scheduler, run]: from the state after five steps on, as a loop of PyTorch's has it, with the run's metrics.
constexpr const char* kPyTorch = R"(
import json, sys, torch
from torch.optim import lr_scheduler as L

def rates(scheduler, run):
    root = torch.load(run + '/checkpoints/step-000005.pt', weights_only=True)
    parameters = root['optimizer']['param_groups'][0]['params']
    o = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1)) for _ in parameters], lr=0.1, momentum=0.9)
    s = eval('L.' + scheduler)
    o.load_state_dict(root['optimizer'])
    s.load_state_dict(root['scheduler'])
    records = [json.loads(line) for line in open(run + '/metrics.jsonl')]
    losses = [r['loss'] for r in records if r['kind'] == 'eval']
    for step in range(5, 12):
        yield o.param_groups[0]['lr']
        o.step()
        s.step(losses[step]) if isinstance(s, L.ReduceLROnPlateau) else s.step()

print(json.dumps([list(rates(*each)) for each in json.loads(sys.argv[1])]))
)";

TEST(Interop, PyTorchGoesOnWithTheSameRates) {
  const std::string python = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  const auto run_python = [&](const Words& arguments) {
    return Program({.command = Words{"/usr/bin/env", python, "-W", "ignore", "-c"} + arguments}).wait();
  };
  if (run_python({"import torch"}).exit_code != 0) {
    GTEST_SKIP() << python << " has no torch; name one that has in LOCKSTEP_PYTORCH_PYTHON";
  }
  const Words all = {"--lr", "0.1", "--save-every", "5", "--keep", "10"};
  nlohmann::json asked;
  for (const auto& [words, scheduler] : kCases) asked.push_back({scheduler, finished_run(all + words)});
  const auto result = run_python({kPyTorch, asked.dump()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto answers = nlohmann::json::parse(result.out).get<std::vector<std::vector<double>>>();
  ASSERT_EQ(answers.size(), kCases.size());
  for (size_t i = 0; i < kCases.size(); ++i) {
    const auto ours = logged(finished_run(all + kCases[i].words), "train", "lr");
    ASSERT_EQ(ours.size(), answers[i].size() + 5);
    for (size_t step = 5; step < ours.size(); ++step) {
      EXPECT_NEAR(ours[step], answers[i][step - 5], 1e-14) << kCases[i].pytorch << ' ' << step;
    }
  }
}

}  // namespace
}  // namespace lockstep::e2e
