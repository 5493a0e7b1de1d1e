#include "lockstep/launch/runs/find_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::refusal;

class FindRuns : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* run : {"mnist-1", "mnist-10", "mnist-2", "unet-1"}) make(run, "lock");
    fs::create_directories(dir_ / "runs/notes");
    std::ofstream(dir_ / "runs/file") << "x";
  }
  void make(const std::string& run, const std::string& file) {
    fs::create_directories(dir_ / ("runs/" + run));
    std::ofstream(dir_ / ("runs/" + run + "/" + file)) << "";
  }
  std::string path(const std::string& run) { return root_ + "/" + run; }

  testing_support::TempDir dir_;
  std::string root_ = dir_ / "runs";
};

TEST_F(FindRuns, AreThoseOfAFolderInTheOrderOfTheirNumbers) {
  const auto all = ElementsAre(path("mnist-1"), path("mnist-2"), path("mnist-10"), path("unet-1"));
  EXPECT_THAT(find_runs({}, root_), all);
  EXPECT_THAT(find_runs({root_}, "nowhere"), all);
  EXPECT_THAT(find_runs({root_ + "/", path("unet-1")}, "nowhere"), all) << "each once";
  EXPECT_THAT(find_runs({path("unet-1") + "/", path("mnist-2")}, root_), ElementsAre(path("mnist-2"), path("unet-1")));
  EXPECT_THAT(find_runs({}, dir_ / "none"), ElementsAre()) << "where nothing has run";
}

TEST_F(FindRuns, AFolderThatIsNoneIsRefused) {
  EXPECT_EQ(refusal([&] { find_runs({path("notes")}, root_); }), path("notes") + ": no run, and no folder of runs");
  EXPECT_THAT(refusal([&] { find_runs({dir_ / "rums"}, root_); }), HasSubstr("did you mean " + root_ + "?"));
}

TEST_F(FindRuns, ARunIsNamedByItsFolderOrItsName) {
  EXPECT_EQ(find_run(path("mnist-1") + "//", root_), path("mnist-1"));
  EXPECT_EQ(find_run("mnist-10", root_), path("mnist-10"));
  EXPECT_EQ(refusal([&] { find_run("mnits-10", root_); }),
            "mnits-10: no such run; did you mean " + path("mnist-10") + "?");
  EXPECT_THAT(refusal([&] { find_run(path("mnist-3"), root_); }), HasSubstr("no such run; did you mean "));
  EXPECT_THAT(refusal([&] { find_run("zebra", root_); }), HasSubstr("lockstep ps --all lists the runs"));
  EXPECT_THAT(refusal([&] { find_run(path("notes"), root_); }), HasSubstr("holds no run"));
  EXPECT_THAT(refusal([&] { find_run(path("file"), root_); }), HasSubstr("a file; name the folder of a run"));
}

TEST_F(FindRuns, AnyOfTheFilesMakesARun) {
  make("a", "config.toml");
  make("b", "metrics.jsonl");
  EXPECT_TRUE(is_run(path("a")));
  EXPECT_TRUE(is_run(path("b")));
  EXPECT_FALSE(is_run(path("notes")));
}

}  // namespace
}  // namespace lockstep::launch
