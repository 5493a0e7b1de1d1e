// `lockstep pack`: what it writes, what training makes of it, and what is left of a packing that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/testing/long_test.h"
#include "lockstep/base/text.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Result packed(const std::string& data, const std::string& out, const Words& more = {}) {
  auto result = lockstep(Words{"pack", data, out} + more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The outcome of some steps on `data`, whatever the file names in it are.
nlohmann::json trained(const std::string& recipe, const std::string& data, const std::string& run, const Words& more,
                       const std::string& steps = "4") {
  const auto result = lockstep(Words{"train", recipe, "--data", data, "--lanes", "4", "--threads", "1", "--steps",
                                     steps, "--epochs", "2", "--out", run} +
                                   more,
                               ".", std::chrono::seconds(200));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return outcome_of(run);
}

TEST(PackedFolders, GiveTheWeightsOfTheirFilesAtAnyNumberOfRanks) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 8);
  packed(dir / "pictures", dir / "in_order", {"--shuffle", "off"});
  packed(dir / "pictures", dir / "shuffled", {"--shards", "3"});
  const Words how = {"--arch", "mobilenet_v2", "--size", "64", "--batch-size", "2", "--augment", "standard"};
  const auto run = [&](const std::string& data, const std::string& name, const Words& more) {
    return trained("imagenet", dir / data, dir / name, how + more);
  };
  const auto files = run("pictures", "1", {"--nproc", "1"});
  EXPECT_EQ(run("in_order", "2", {"--nproc", "1", "--workers", "3"}), files);
  EXPECT_EQ(run("in_order", "3", {"--nproc", "2"}), files);
  const auto other_order = run("shuffled", "4", {"--nproc", "1"});
  EXPECT_NE(other_order.at("weights_sha256"), files.at("weights_sha256"));
  EXPECT_EQ(run("shuffled", "5", {"--nproc", "2", "--workers", "2"}), other_order);
}

TEST(PackedFolders, OfMasksGiveTheWeightsOfTheirFiles) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "pairs", 8);
  packed(dir / "pairs", dir / "packed", {"--shuffle", "off"});
  const Words how = {"--size", "32", "--width", "4", "--batch-size", "1"};
  const auto files = trained("unet", dir / "pairs", dir / "1", how + Words{"--nproc", "1"});
  EXPECT_EQ(trained("unet", dir / "packed", dir / "2", how + Words{"--nproc", "2"}), files);
}

TEST(PackedFolders, AreResumedAndNamedWhereTheyHaveChanged) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_class_folders(dir / "pictures", 2, 10);
  packed(dir / "pictures", dir / "packed");
  const std::string run = dir / "run";
  const Words how = {"--arch", "mobilenet_v2", "--size", "32", "--batch-size", "2", "--drop-last"};
  const auto whole = trained("imagenet", dir / "packed", dir / "whole", how, "2");
  trained("imagenet", dir / "packed", run, how, "1");
  ASSERT_EQ(lockstep({"train", "--resume", run, "--steps", "2"}).exit_code, 0);
  EXPECT_EQ(outcome_of(run), whole);
  fs::copy(dir / "pictures/class_00/0.jpg", dir / "pictures/class_00/new.jpg");
  packed(dir / "pictures", dir / "packed", {"--overwrite"});
  const auto refused = lockstep({"train", "--resume", run, "--steps", "3"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("shard-00000.lks has "));
}

TEST(PackedFolders, SayWhatTheyAreAndHowToTrainOnThem) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 2, 3);
  const auto result = packed(dir / "pictures", dir / "out");
  EXPECT_THAT(result.out, AllOf(HasSubstr("packed 6 samples of 6 JPEGs of 2 classes"), HasSubstr("1 shard of "),
                                HasSubstr("lockstep train imagenet --data " + dir / "out")));
  EXPECT_THAT(result.out, Not(HasSubstr("\r"))) << "nobody reads along";
  const auto json = nlohmann::json::parse(packed(dir / "pictures", dir / "small", {"--size", "16", "--json"}).out);
  EXPECT_EQ(json.at("parts").at(0).at("samples"), 6);
  EXPECT_EQ(json.at("parts").at(0).at("packing"), "at most 16 pixels, shuffled by seed 1");
  const auto again = lockstep({"pack", dir / "pictures", dir / "out"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("there are files in it"));
}

TEST(PackedFolders, ABadImageIsNamedAndNothingIsWritten) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 2, 3);
  write_file(dir / "pictures/class_01/7.jpg", "<!DOCTYPE html>");
  const auto result = lockstep({"pack", dir / "pictures", dir / "out"});
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("class_01/7.jpg: it is no image"), HasSubstr("--skip-bad N")));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("pictures"));
  const auto skipped = packed(dir / "pictures", dir / "out", {"--skip-bad", "1"});
  EXPECT_THAT(skipped.out, AllOf(HasSubstr("packed 6 samples"), HasSubstr("left out: "), HasSubstr("7.jpg: ")));
}

// So many pictures that a packing takes a while.
struct Long {
  Long() {
    write_class_folders(dir / "pictures", 1, 1);
    for (int i = 1; i < 4000; ++i) {
      fs::create_hard_link(dir / "pictures/class_00/0.jpg", cat(dir / "pictures/class_00/", i, ".jpg"));
    }
  }
  std::vector<std::string> command() const { return {"pack", dir / "pictures", dir / "out", "--shard-size", "1"}; }
  // Whether a shard is there, so that the packing is under way.
  bool begun() const { return fs::exists(dir / "out.packing/shard-00000.lks"); }
  const TempDir dir{};
};

TEST(APacking, ThatIsKilledIsNeverTakenForAWholeOne) {
  const Long long_one;
  const TempDir& dir = long_one.dir;
  {
    Program program(lockstep_command(long_one.command()));
    ASSERT_TRUE(eventually([&] { return long_one.begun(); })) << program.err();
    for (const pid_t pid : program.processes()) kill(pid, SIGKILL);
    EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  }
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out.packing", "pictures"));
  const auto refused = lockstep({"train", "imagenet", "--data", dir / "out.packing", "--out", dir / "run"});
  EXPECT_EQ(refused.exit_code, 65) << "there is no manifest";
  packed(dir / "pictures", dir / "out", {"--shard-size", "1"});
  EXPECT_THAT(names_in(dir.path()), ElementsAre("out", "pictures")) << "the next one clears up";
  EXPECT_EQ(lockstep({"data", dir / "out", "--verify"}).exit_code, 0);
}

TEST(APacking, ThatIsInterruptedLeavesNothingBehind) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Long long_one;
    Program program(lockstep_command(long_one.command()));
    ASSERT_TRUE(eventually([&] { return long_one.begun(); })) << program.err();
    program.signal(signal);
    EXPECT_EQ(program.wait().exit_code, 128 + signal);
    EXPECT_THAT(names_in(long_one.dir.path()), ElementsAre("pictures"));
  }
}

// A file system of 300 KiB, seen by the command alone.
TEST(APacking, OntoAFullDiskLeavesNothingBehind) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 2, 60);
  fs::create_directory(dir / "disk");
  const std::string mount = cat("mount -t tmpfs -o size=300k none ", dir / "disk");
  const auto in_namespace = [&](const std::string& line) {
    return Program({.command = {"/usr/bin/unshare", "-m", "/bin/sh", "-c", line}}).wait();
  };
  if (in_namespace(mount).exit_code != 0) GTEST_SKIP() << "no file system can be mounted here";
  const std::string pack = cat(bin_folder(), "/lockstep pack ", dir / "pictures", " ", dir / "disk/out");
  const auto result = in_namespace(cat(mount, " && { ", pack, "; code=$?; ls -A ", dir / "disk", "; exit $code; }"));
  EXPECT_EQ(result.exit_code, 74) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("No space left on device"), HasSubstr("free space there")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.out, "");
  const auto onto_mount =
      in_namespace(cat(mount, " && ", bin_folder(), "/lockstep pack ", dir / "pictures", " ", dir / "disk"));
  EXPECT_EQ(onto_mount.exit_code, 2);
  EXPECT_THAT(onto_mount.err, HasSubstr("is a mount point"));
}

}  // namespace
}  // namespace lockstep::e2e
