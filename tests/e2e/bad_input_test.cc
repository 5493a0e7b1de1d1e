// Everything that a user can get wrong: one line that says what, the right exit code, at once, on any number of ranks,
// and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "digits.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/gpu.h"
#include "runs.h"
#include "spoil.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr double kAtOnce = 20;  // seconds; 1 on a machine with nothing else to do
const std::string kImages = "/train-images-idx3-ubyte", kLabels = "/train-labels-idx1-ubyte";

void expect_one_line_at_once(const Result& result, int exit_code, const std::string& what) {
  expect_one_line(result, exit_code, what);
  EXPECT_EQ(result.err.rfind("error: ", 0), 0u) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_LT(result.seconds, kAtOnce);
  ::testing::Test::RecordProperty("seconds", std::to_string(result.seconds));
}

void expect_refused(const Words& words, int exit_code, const std::string& what) {
  const TempDir dir;
  const std::string out = dir / "new/run";
  Program program(lockstep_command(words + Words{"--out", out}, dir.path()));
  expect_one_line_at_once(program.wait(std::chrono::seconds(20)), exit_code, what);
  EXPECT_TRUE(program.all_gone(std::chrono::seconds(5)));
  EXPECT_TRUE(fs::is_empty(dir.path())) << *fs::recursive_directory_iterator(dir.path());
}

struct SpoiledData {
  const char* name;
  void (*spoil)(const std::string& folder);
  const char* what;  // in the line
};

class BadData : public ::testing::TestWithParam<SpoiledData> {};

TEST_P(BadData, IsRefused) {
  const TempDir data;
  write_digits(data.path(), 40, 20);
  GetParam().spoil(data.path());
  expect_refused({"train", "mnist", "--data", data.path(), "--nproc", "2"}, DataError::kExitCode, GetParam().what);
}

void add_bytes(const std::string& path, const std::string& bytes) { write_file(path, read_file(path) + bytes); }

void cut(const std::string& path, size_t bytes) { fs::resize_file(path, fs::file_size(path) - bytes); }

void replace_by_gzip(const std::string& path, const std::string& content) {
  fs::remove(path);
  write_file(path + ".gz", content);
}

// Its own header promises more than any machine has.
void promise(const std::string& path, uint32_t count, uint32_t side) {
  write_file(path, idx_file(2051, {count, side, side}, "few"));
}

const SpoiledData kSpoiledData[] = {
    {"Missing", [](const std::string& dir) { fs::remove(dir + kLabels); }, "train-labels-idx1-ubyte"},
    {"None", [](const std::string& dir) { fs::remove_all(dir), fs::create_directory(dir); }, "no MNIST"},
    {"Empty", [](const std::string& dir) { write_file(dir + kImages, ""); }, "train-images-idx3-ubyte"},
    {"NoImages", [](const std::string& dir) { write_digits(dir, 0, 0); }, "no images"},
    {"TruncatedImages", [](const std::string& dir) { cut(dir + kImages, 1); }, "train-images-idx3-ubyte"},
    {"TruncatedLabels", [](const std::string& dir) { cut(dir + kLabels, 1); }, "train-labels-idx1-ubyte"},
    {"TooLong", [](const std::string& dir) { add_bytes(dir + kImages, "x"); }, "train-images-idx3-ubyte"},
    {"ImagesNamedLabels",
     [](const std::string& dir) { fs::copy_file(dir + kImages, dir + kLabels, fs::copy_options::overwrite_existing); },
     "images"},
    {"LabelsNamedImages",
     [](const std::string& dir) { fs::copy_file(dir + kLabels, dir + kImages, fs::copy_options::overwrite_existing); },
     "labels"},
    {"Text", [](const std::string& dir) { write_file(dir + kImages, "<html>404 Not Found</html>"); }, "train-images"},
    {"NotGzip", [](const std::string& dir) { replace_by_gzip(dir + kImages, "not gzip at all"); }, "idx3-ubyte.gz"},
    {"BrokenGzip", [](const std::string& dir) { replace_by_gzip(dir + kImages, broken_gzip("few", 30000)); },
     "idx3-ubyte.gz"},
    {"Oversized", [](const std::string& dir) { promise(dir + kImages, 0xffffffff, 28); }, "train-images-idx3-ubyte"},
    {"OversizedSides", [](const std::string& dir) { promise(dir + kImages, 40, 0xffffffff); }, "train-images"},
    {"OtherSize",
     [](const std::string& dir) {
       write_file(dir + kImages, idx_file(2051, {40, 2, 2}, std::string(160, 'x')));
     },
     "28"},
    {"CountsThatDisagree", [](const std::string& dir) { write_file(dir + kLabels, labels(39, 1)); }, "39"},
    {"LabelPastTheClasses", [](const std::string& dir) { cut(dir + kLabels, 1), add_bytes(dir + kLabels, "\x0a"); },
     "10"},
    {"TestPartOfTheWrongCount",
     [](const std::string& dir) { write_file(dir + "/t10k-labels-idx1-ubyte", labels(5, 2)); }, "t10k-images"},
    {"AFolderForAFile", [](const std::string& dir) { fs::remove(dir + kImages), fs::create_directory(dir + kImages); },
     "train-images"},
    {"APipeForAFile", [](const std::string& dir) { fs::remove(dir + kImages), mkfifo((dir + kImages).c_str(), 0600); },
     "train-images"},
    {"AnEndlessDevice",
     [](const std::string& dir) { fs::remove(dir + kImages), fs::create_symlink("/dev/zero", dir + kImages); },
     "train-images"},
};

INSTANTIATE_TEST_SUITE_P(Files, BadData, ::testing::ValuesIn(kSpoiledData),
                         [](const auto& spoiled) { return std::string(spoiled.param.name); });

struct BadWords {
  Words words;
  int exit_code;
  const char* what;
};

TEST(BadOptions, AreRefused) {
  const std::vector<BadWords> all = {
      {{"--nproc", "3", "--lanes", "4"}, 2, "--lanes"},
      {{"--epoch", "2"}, 2, "--epochs"},
      {{"--learning-rte", "2"}, 2, "--learning-rte"},
      {{"--epochs", "0"}, 2, "--epochs"},
      {{"--steps", "-1"}, 2, "--steps"},
      {{"--lr", "fast"}, 2, "--lr"},
      {{"--lr", "nan"}, 2, "--lr"},
      {{"--batch-size", "99999999999999999999"}, 2, "--batch-size"},
      {{"--nproc", "0"}, 2, "--nproc"},
      {{"--amp", "O9"}, 2, "--amp"},
      {{"--preset", "padle"}, 2, "--preset"},
      {{"--nproc", "2", "--lanes", "4", "--global-batch-size", "30"}, 2, "--global-batch-size"},
      {{"--data", "/no/such/folder"}, 2, "/no/such/folder"},
      {{"--load", "/no/such/file.pt"}, 2, "/no/such/file.pt"},
      {{"--resume", "/no/such/run"}, 2, "/no/such/run"},
      {{"--config", "/no/such/file.toml"}, 2, "/no/such/file.toml"},
  };
  for (const auto& bad : all) {
    SCOPED_TRACE(::testing::PrintToString(bad.words));
    expect_refused(Words{"train", "mnist"} + bad.words, bad.exit_code, bad.what);
  }
}

// An input that is not there is the line's mistake, whatever command it is given to.
TEST(BadOptions, MissingFilesAreNamedWithTheNearest) {
  const TempDir dir;
  write_file(dir / "last.pt", "x");
  const std::string missing = dir / "lsat.pt", near = "did you mean " + (dir / "last.pt") + "?";
  for (const Words& words :
       {Words{"eval", "mnist", "--load", missing}, Words{"eval", missing}, Words{"inspect", missing},
        Words{"train", "mnist", "--load", missing}, Words{"train", "mnist", "--resume", missing},
        Words{"train", "--config", missing}, Words{"train", "mnist", "--data", missing}}) {
    SCOPED_TRACE(::testing::PrintToString(words));
    expect_one_line_at_once(lockstep(words, dir.path()), ConfigError::kExitCode, near);
  }
  const Words data = {"eval", "mnist", "--load", finished_run() + "/checkpoints/last.pt", "--data", missing};
  expect_one_line_at_once(lockstep(data), ConfigError::kExitCode, near);
}

TEST(BadOptions, NameTheNearestCommandAndRecipe) {
  expect_one_line_at_once(lockstep({"trian", "mnist"}), 2, "train");
  expect_one_line_at_once(lockstep({"train", "mnits"}), 2, "mnist");
  expect_one_line_at_once(lockstep({"eval", "mnist"}), 2, "--load");
}

TEST(BadOut, IsRefused) {
  const TempDir dir;
  write_file(dir / "file", "a file");
  const std::string unwritable = "/proc/lockstep/run";
  expect_one_line_at_once(lockstep(train_words({"--nproc", "2", "--out", unwritable})), IoError::kExitCode,
                          "/proc/lockstep");
  const std::string file = dir / "file", mistake = ": " + file + " is a file, not a folder";
  for (const std::string& out : {file, file + "/run"}) {
    SCOPED_TRACE(out);
    for (const Words& words : {train_words({"--nproc", "2", "--out", out}), train_words({"--nproc", "1", "--out", out}),
                               Words{"launch", "--log-dir", out, "true"}}) {
      expect_one_line_at_once(lockstep(words), ConfigError::kExitCode, out + mistake);
    }
  }
  EXPECT_EQ(read_file(file), "a file");
}

TEST(BadOut, OfAFinishedRunIsKept) {
  const std::string& run = finished_run();
  const std::string before = read_file(run + "/final.json");
  expect_one_line_at_once(lockstep(train_words({"--out", run})), ConfigError::kExitCode, "--resume");
  EXPECT_EQ(read_file(run + "/final.json"), before);
  EXPECT_EQ(steps_logged(run), first_steps(kSteps));
}

struct BadCheckpoint {
  const char* name;
  std::string (*spoil)(const std::string& checkpoint);
  int exit_code;
};

class BadCheckpoints : public ::testing::TestWithParam<BadCheckpoint> {};

TEST_P(BadCheckpoints, AreNotLoadedResumedOrEvaluated) {
  const TempDir dir;
  const std::string file = dir / "bad.pt";
  write_file(file, GetParam().spoil(read_file(finished_run() + "/checkpoints/last.pt")));
  expect_refused(train_words({"--nproc", "2", "--load", file}), GetParam().exit_code, file);
  expect_refused(train_words({"--nproc", "2", "--resume", file}), GetParam().exit_code, file);
  expect_one_line_at_once(lockstep({"eval", "mnist", "--data", digits_folder(), "--nproc", "2", "--load", file}),
                          GetParam().exit_code, file);
}

std::string with_flipped_bit(std::string bytes) {
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  return bytes;
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadCheckpoints,
    ::testing::Values(
        BadCheckpoint{"OfOtherNames", [](const std::string& file) { return with_other_names(file, "conv1", "convA"); },
                      2},
        BadCheckpoint{"Truncated", [](const std::string& file) { return file.substr(0, file.size() / 2); }, 65},
        BadCheckpoint{"WithAFlippedBit", [](const std::string& file) { return with_flipped_bit(file); }, 65},
        BadCheckpoint{"Empty", [](const std::string&) { return std::string(); }, 65},
        BadCheckpoint{"Text", [](const std::string&) { return std::string("no checkpoint\n"); }, 65}),
    [](const auto& bad) { return std::string(bad.param.name); });

// A sound file of PyTorch's, of something else.
TEST(BadCheckpoints, OfAnotherProgram) {
  const std::string file = LOCKSTEP_SOURCE_DIR "/lockstep/checkpoint/formats/testdata/written_by_pytorch.pt";
  ASSERT_TRUE(fs::exists(file));
  expect_refused(train_words({"--nproc", "2", "--load", file}), 2, "written_by_pytorch.pt");
  expect_refused(train_words({"--nproc", "2", "--resume", file}), 65, "written_by_pytorch.pt");
}

// What lies in a run's folder stays as it is if the run can't go on.
TEST(BadResume, LeavesTheRunAsItWas) {
  const TempDir dir;
  const std::string run = dir / "run";
  fs::copy(finished_run(), run, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const std::string config = read_file(run + "/config.toml");
  for (const Words& other : {Words{"--seed", "2"}, {"--amp", "O1"}, {"--batch-size", "9"}, {"--lanes", "8"}}) {
    SCOPED_TRACE(::testing::PrintToString(other));
    const Words words = {"train", "mnist", "--data", digits_folder(), "--nproc", "2", "--steps", "20", "--resume", run};
    const Words batch = other[0] == "--batch-size" ? Words{} : Words{"--batch-size", "8"};
    expect_one_line_at_once(lockstep(words + batch + other), ConfigError::kExitCode,
                            other[0] == "--amp" ? "O1" : other[1]);
    EXPECT_EQ(read_file(run + "/config.toml"), config);
    EXPECT_EQ(outcome_of(run), outcome_of(finished_run()));
    EXPECT_EQ(steps_logged(run), first_steps(kSteps));
  }
}

TEST(Worker, SaysWhatItIs) {
  const auto worker = [](const Words& words) {
    return Program({.command = Words{bin_folder() + "/lockstep-worker"} + words}).wait();
  };
  const Result help = worker({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Usage: lockstep-worker COMMAND"));
  EXPECT_EQ(worker({}).exit_code, ConfigError::kExitCode);
  EXPECT_THAT(worker({"launch"}).err, HasSubstr("all else is lockstep's"));
}

TEST(BadInput, AWorkerThatNoFrontStartedLeavesNothingBehind) {
  const TempDir dir, data;
  const auto result = Program({.command = {bin_folder() + "/lockstep-worker", "train", "mnist", "--data", data.path()},
                               .folder = dir.path()})
                          .wait();
  EXPECT_EQ(result.exit_code, DataError::kExitCode) << result.err;
  EXPECT_TRUE(fs::is_empty(dir.path())) << *fs::recursive_directory_iterator(dir.path());
}

TEST(BadInput, AnEnvironmentThatIsNotOurLaunchersIsNamed) {
  const auto result = Program({.command = {"/usr/bin/env", "LOCKSTEP_NODE_MEMORY=rubbish", "LOCAL_RANK=0",
                                           bin_folder() + "/lockstep-worker", "train", "mnist"}})
                          .wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err.rfind("error: LOCKSTEP_NODE_MEMORY=rubbish: ", 0), 0u) << result.err;
}

TEST(BadInput, WithoutAGpuNoRankIsStarted) {
  if (testing_support::has_gpu_file()) GTEST_SKIP() << "this machine has one";
  const TempDir dir;
  for (const char* ranks : {"1", "2", "auto"}) {
    const auto result = lockstep(train_words({"--device", "cuda", "--nproc", ranks, "--out", dir / "run"}));
    EXPECT_EQ(result.exit_code, 2) << ranks;
    EXPECT_THAT(result.err, HasSubstr("--device cuda: no GPU can be used here")) << ranks;
    EXPECT_FALSE(fs::exists(dir / "run")) << ranks;
  }
}

}  // namespace
}  // namespace lockstep::e2e
