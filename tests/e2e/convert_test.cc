// lockstep convert, and weights in other formats as train and eval take them; hostile files as inspect refuses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>

#include "lockstep/base/error.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string checkpoint() { return finished_run() + "/checkpoints/last.pt"; }

nlohmann::json inspected(const std::string& path) {
  const auto result = lockstep({"inspect", path, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

TEST(Convert, WritesSafetensorsAndNamesWhatIsLeftOut) {
  const TempDir dir;
  const auto result = lockstep({"convert", finished_run(), dir / "lenet.safetensors"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("lenet.safetensors: written from " + finished_run()));
  EXPECT_THAT(result.out, HasSubstr("took the state dict under model\n"));
  EXPECT_THAT(result.out, HasSubstr("left out: optimizer, amp, scheduler, sampler, rng, meta\n"));
  ASSERT_EQ(lockstep({"convert", dir / "lenet.safetensors", dir / "back.pth"}).exit_code, 0);
  const auto whole = inspected(checkpoint()), weights = inspected(dir / "lenet.safetensors"),
             back = inspected(dir / "back.pth");
  EXPECT_EQ(weights.at("__metadata__/format").at("value"), "pt");
  EXPECT_EQ(back.size(), 6u);
  for (const auto& [name, leaf] : back.items()) {
    EXPECT_EQ(leaf, whole.at("model/" + name)) << name;
    EXPECT_EQ(leaf, weights.at(name)) << name;
  }
}

TEST(Convert, WhatItWritesIsTrainedAndEvaluated) {
  const TempDir dir;
  fs::create_directory(dir / "model");
  ASSERT_EQ(lockstep({"convert", checkpoint(), dir / "model/lenet.safetensors"}).exit_code, 0);
  const auto eval =
      lockstep({"eval", "mnist", "--data", digits_folder(), "--load", dir / "model", "--threads", "1", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out).at("loss"), final_of(finished_run()).at("loss"));
  const auto train = lockstep(train_words({"--load", dir / "model", "--steps", "1", "--out", dir / "run"}));
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("  weights     " + dir / "model"));
  fs::create_directory(dir / "other");
  ASSERT_EQ(lockstep({"convert", checkpoint(), dir / "other/lenet.safetensors"}).exit_code, 0);
  const auto compared = lockstep({"diff", dir / "model", dir / "other"});
  EXPECT_EQ(compared.exit_code, 0) << compared.out << compared.err;
}

TEST(Convert, ThroughPaddlesFormatAndBackNothingIsLost) {
  const TempDir dir;
  const auto there = lockstep({"convert", finished_run(), dir / "lenet.pdparams"});
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_THAT(there.out, HasSubstr("in Paddle's names and layouts; 1 weights"));
  ASSERT_EQ(lockstep({"convert", dir / "lenet.pdparams", dir / "back.pt"}).exit_code, 0);
  const auto whole = inspected(checkpoint()), back = inspected(dir / "back.pt");
  EXPECT_EQ(back.size(), 6u);
  for (const auto& [name, leaf] : back.items()) EXPECT_EQ(leaf, whole.at("model/" + name)) << name;
  const auto eval = lockstep(
      {"eval", "mnist", "--data", digits_folder(), "--load", dir / "lenet.pdparams", "--threads", "1", "--json"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out).at("loss"), final_of(finished_run()).at("loss"));
}

TEST(Convert, AnOptimizersStateThroughPaddlesFormatAndBack) {
  const TempDir dir;
  const std::string params = LOCKSTEP_SOURCE_DIR "/tests/fixtures/paddle/lenet.pdparams";  // by paddle.save
  const std::string state = dir / "lenet.pdopt", back = dir / "back.pt", ours = dir / "ours.pdparams";
  const auto there = lockstep({"convert", finished_run(), state, "--names", params});
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_THAT(there.out, HasSubstr("the state of SGD with momentum"));
  const auto both = lockstep({"convert", params, back, "--optimizer", state});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("of SGD with momentum; its hyper-parameters are Paddle's defaults"));
  ASSERT_EQ(lockstep({"convert", finished_run(), ours}).exit_code, 0);
  const auto was = inspected(checkpoint()), is = inspected(back);
  int buffers = 0;
  for (const auto& [name, leaf] : is.items()) {
    if (!name.ends_with("/momentum_buffer")) continue;
    EXPECT_EQ(leaf, was.at(name)) << name;
    ++buffers;
  }
  EXPECT_EQ(buffers, 6);
  const std::pair<Words, const char*> mistakes[] = {
      {{finished_run(), state}, "lenet.pdopt: needs --names"},
      {{finished_run(), ours, "--names", params}, "--names goes with a .pdopt"},
      {{finished_run(), state, "--names", ours}, "ours.pdparams: has no names of Paddle's"},
      {{params, ours, "--optimizer", state}, "--optimizer goes with a .pt"},
      {{params, back, "--beta1", "0.8"}, "--beta1 and --beta2 go with --optimizer"},
      {{state, back}, "lenet.pdopt: is an optimizer's state; give it as --optimizer beside its .pdparams"},
      {{params, back, "--optimizer", state, "--weights"}, "don't go with an optimizer's state"},
      {{checkpoint(), back, "--optimizer", state}, "is no file of paddle.save"},
      {{params, state, "--names", params}, "holds no optimizer's state"}};
  for (const auto& [words, text] : mistakes) {
    const auto result = lockstep(Words{"convert"} + words);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(text));
  }
}

TEST(Convert, RefusesWhatItCantDo) {
  const TempDir dir;
  const auto prefix = lockstep({"convert", checkpoint(), dir / "a.safetensors", "--strip-prefix", "net."});
  EXPECT_EQ(prefix.exit_code, 2);
  EXPECT_THAT(prefix.err, HasSubstr("no name begins with net.; the first is conv1.weight"));
  EXPECT_FALSE(fs::exists(dir / "a.safetensors"));
  EXPECT_EQ(lockstep({"convert", checkpoint(), dir / "a.onnx"}).exit_code, 2);
  EXPECT_EQ(lockstep({"convert", dir / "none.pt", dir / "a.pt"}).exit_code, 2);
  EXPECT_EQ(lockstep({"convert", checkpoint(), dir / "no/a.pt"}).exit_code, 74);
}

// A prefix that all names have is dropped by itself where the model's have none, and the header says so.
TEST(Load, SaysWhichPrefixItDropped) {
  const TempDir dir;
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints/lenet_ddp_module_prefix.pt";
  const auto train = lockstep(train_words({"--load", file, "--steps", "1", "--out", dir / "run"}));
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("  weights     " + file + ", the names without module.\n"));
  const auto other =
      lockstep(train_words({"--load", LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints/unet_mask_values.pt", "--steps",
                            "1", "--out", dir / "other"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("a checkpoint of another model: "));
  EXPECT_THAT(other.err, HasSubstr("the file lacks conv1.weight [20, 1, 5, 5]"));
}

// One file, two models: which of them a command takes is said, and the other is a word away.
TEST(Load, AnAverageIsTakenWhereItIsSaid) {
  const TempDir dir;
  const std::string run = dir / "run", plain = dir / "plain.pt", average = dir / "average.pt";
  const auto train = lockstep(train_words({"--steps", "6", "--ema", "0.9", "--out", run}));
  ASSERT_EQ(train.exit_code, 0) << train.err;
  const std::string file = run + "/checkpoints/last.pt";
  const auto own = lockstep({"convert", file, plain, "--weights"});
  EXPECT_THAT(own.out, HasSubstr("ema is an average of the weights, which --average takes"));
  ASSERT_EQ(lockstep({"convert", file, average, "--weights", "--average"}).exit_code, 0);
  EXPECT_THAT(lockstep({"convert", file, plain, "--average"}).err, HasSubstr("--average goes with --weights"));
  const auto loss_of = [&](const std::string& checkpoint, const Words& flags, const std::string& name) {
    const auto result =
        lockstep(Words{"eval", "mnist", "--data", digits_folder(), "--load", checkpoint, "--json"} + flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto found = nlohmann::json::parse(result.out);
    EXPECT_EQ(found.at("weights"), name);
    return found.at("loss").get<double>();
  };
  const double of_plain = loss_of(plain, {}, ""), of_average = loss_of(average, {}, "");
  EXPECT_NE(of_plain, of_average);
  EXPECT_EQ(loss_of(file, {}, "ema"), of_average);
  EXPECT_EQ(loss_of(file, {"--average", "off"}, "model"), of_plain);
  const auto told = lockstep({"eval", "mnist", "--data", digits_folder(), "--load", file});
  EXPECT_THAT(told.err, HasSubstr("took ema, not model"));
  const auto begun = [&](const Words& flags) {
    const std::string out = dir / "begun";
    const auto result =
        lockstep(train_words(Words{"--load", file, "--lr", "0", "--steps", "1", "--out", out, "--overwrite"} + flags));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    fs::remove_all(dir / "begun_before");
    fs::rename(out, dir / "begun_before");
    return result.out;
  };
  EXPECT_THAT(begun({}), HasSubstr(", model, not ema\n"));
  EXPECT_THAT(begun({"--load-average", "on"}), HasSubstr(", ema, not model\n"));
  // A run that goes on still says how it began.
  const std::string config = dir / "begun_before/config.toml";
  const auto more = lockstep({"train", "--resume", dir / "begun_before", "--steps", "2"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  EXPECT_THAT(read_file(config), HasSubstr("load-average = 'on'"));
  const auto none = lockstep(train_words({"--load", plain, "--load-average", "on", "--out", dir / "none"}));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("has no average of the weights"));
}

TEST(Load, OfAHeadForOtherClassesWhatFits) {
  const TempDir dir;
  const Words net = {"train",        "imagenet", "--arch",  "resnet18", "--size",  "32",
                     "--batch-size", "2",        "--steps", "1",        "--nproc", "1"};
  const auto first = lockstep(net + Words{"--out", dir / "first"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string file = dir / "first/checkpoints/last.pt";
  const std::string shapes = dir / "shapes";
  ASSERT_EQ(lockstep({"draw", "shapes", shapes, "--samples", "100", "--size", "32"}).exit_code, 0);
  std::set<std::string> classes;
  for (const auto& entry : fs::directory_iterator(shapes + "/train")) classes.insert(entry.path().filename().string());
  for (const std::string& name : std::set(std::next(classes.begin(), 3), classes.end())) {
    fs::remove_all(shapes + "/train/" + name);
    fs::remove_all(shapes + "/val/" + name);
  }
  const Words other = net + Words{"--data", shapes, "--load", file, "--out", dir / "other"};
  const auto refused = lockstep(other);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("fc.weight: the file has [10, 512], the model [3, 512]"));
  const auto partly = lockstep(other + Words{"--load-partly"});
  EXPECT_EQ(partly.exit_code, 0) << partly.err;
  EXPECT_THAT(partly.out, HasSubstr("2 do not: fc.weight: the file has [10, 512], the model [3, 512], fc.bias"));
  fs::remove_all(dir / "other");
  const auto quiet = lockstep(other + Words{"--load-partly", "--quiet"});
  EXPECT_THAT(quiet.err, HasSubstr("2 do not: fc.weight")) << "what begins anew is said where there is no header";
  EXPECT_EQ(lockstep(net + Words{"--load-partly", "--out", dir / "none"}).exit_code, 2);
}

// The newest whole checkpoint, which config.toml names: the run may save others meanwhile.
TEST(Load, OfARunsFolderItsNewest) {
  const TempDir dir;
  const std::string run = dir / "run", newest = run + "/checkpoints/step-000003.pt";
  const Words saves = {"--steps", "3", "--save-every", "1", "--out", run};
  ASSERT_EQ(lockstep(train_words(saves)).exit_code, 0);
  const auto begun = [&](const std::string& name) {
    const auto result = lockstep(train_words({"--load", run, "--steps", "1", "--nproc", "2", "--out", dir / name}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  EXPECT_THAT(begun("whole").out, HasSubstr("\n  weights     " + newest));
  EXPECT_THAT(read_file(dir / "whole/config.toml"), HasSubstr("load = '" + newest + "'"));
  fs::resize_file(newest, 1000);
  const auto damaged = begun("damaged");
  EXPECT_THAT(damaged.err, AllOf(HasSubstr(newest), HasSubstr("taking " + run + "/checkpoints/step-000002.pt")));
  EXPECT_THAT(damaged.out, HasSubstr("\n  weights     " + run + "/checkpoints/step-000002.pt"));
}

// A run that is started anew before its first checkpoint begins with the weights that it began with at first.
TEST(Load, OfARunUnderWayIsTheSameAfterARestart) {
  const TempDir dir;
  const std::string run = dir / "run", newest = run + "/checkpoints/step-000003.pt", later = dir / "later.pt";
  ASSERT_EQ(lockstep(train_words({"--steps", "3", "--save-every", "1", "--out", run})).exit_code, 0);
  fs::rename(newest, later);
  const Words endless = {"--epochs", "1000000", "--save-every", "0", "--eval-every", "0", "--snapshot-every", "0"};
  const Words more = {"--load", run, "--nproc", "2", "--max-restarts", "1", "--out", dir / "next"};
  Program program(lockstep_command(train_words(endless + more)));
  ASSERT_TRUE(eventually([&] { return !records_of(dir / "next", "train").empty(); })) << program.err();
  fs::rename(later, newest);
  const auto workers = program.processes("lockstep-worker");
  ASSERT_FALSE(workers.empty());
  kill(workers[0], SIGKILL);
  ASSERT_TRUE(eventually([&] { return program.out().find("restart 1: begins anew") != std::string::npos; }));
  ASSERT_TRUE(eventually([&] { return records_of(dir / "next", "train").size() > 3; })) << program.err();
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, kExitStoppedOnRequest);
  EXPECT_THAT(read_file(dir / "next/config.toml"), HasSubstr("load = '" + run + "/checkpoints/step-000002.pt'"));
}

// Each in one line, with 65, within a second of a machine with nothing else to do, and in little memory.
TEST(Hostile, FilesAreRefused) {
  const TempDir dir;
  const auto good = lockstep({"inspect", LOCKSTEP_SOURCE_DIR "/tests/fixtures/checkpoints/dtypes.pt"});
  ASSERT_EQ(good.exit_code, 0) << good.err;
  std::vector<fs::directory_entry> entries;
  const std::string source = LOCKSTEP_SOURCE_DIR;
  size_t number = 0;  // all are read by checkpoint/formats' tests, in one process
  for (const auto& entry : fs::directory_iterator(source + "/tests/fixtures/hostile")) {
    if (number++ % 3 == 0) entries.push_back(entry);
  }
  std::error_code not_there;
  for (const auto& entry : fs::directory_iterator(source + "/../shared/fixtures/hostile", not_there)) {
    entries.push_back(entry);
  }
  for (const auto& entry : entries) {
    const std::string path = entry.path().string();
    const auto result = lockstep({"inspect", path}, dir.path());
    EXPECT_EQ(result.exit_code, 65) << path << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(entry.path().filename().string() + ": "));
    EXPECT_LT(result.seconds, 20) << path;
    EXPECT_LT(result.peak_mb, good.peak_mb + 256 + static_cast<double>(entry.file_size()) / 1e6) << path;
  }
  EXPECT_GT(entries.size(), 25u);
  EXPECT_TRUE(fs::is_empty(dir.path())) << "something was executed";
}

}  // namespace
}  // namespace lockstep::e2e
