#include "lockstep/config/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::config {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing_support::refusal;

class InputsTest : public ::testing::Test {
 protected:
  InputsTest() {
    std::filesystem::create_directories(dir_ / "mnist-1/checkpoints");
    std::ofstream(dir_ / "mnist-1/checkpoints/last.pt") << "x";
  }
  testing_support::TempDir dir_;
};

TEST_F(InputsTest, WhatIsThereIsFine) {
  EXPECT_NO_THROW(require_there("--data", dir_.path()));
  EXPECT_NO_THROW(require_file("--load", dir_ / "mnist-1/checkpoints/last.pt"));
}

TEST_F(InputsTest, AFileInAFoldersPlaceIsNamed) {
  EXPECT_NO_THROW(require_folder_place("--out", dir_ / "mnist-1/checkpoints"));
  EXPECT_NO_THROW(require_folder_place("--out", dir_ / "new/run"));
  EXPECT_NO_THROW(require_folder_place("--out", ""));
  const std::string file = dir_ / "mnist-1/checkpoints/last.pt", link = dir_ / "link";
  std::filesystem::create_symlink("nowhere", link);
  for (const std::string& path : {file, file + "/", file + "/a/b"}) {
    EXPECT_THAT(refusal([&] { require_folder_place("--out", path, "; choose another"); }),
                HasSubstr("--out " + path + ": " + file))
        << path;
  }
  EXPECT_THAT(refusal([&] { require_folder_place("--out", link + "/run"); }),
              EndsWith(link + " is a link that leads nowhere"));
}

TEST_F(InputsTest, AMissingOneIsNamedWithTheNearest) {
  EXPECT_THAT(refusal([&] { require_file("--load", dir_ / "mnist-1/checkpoints/lst.pt"); }),
              EndsWith("/lst.pt: no such file; did you mean " + (dir_ / "mnist-1/checkpoints/last.pt") + "?"));
  EXPECT_THAT(refusal([&] { require_there("--resume", dir_ / "mnist-2"); }),
              HasSubstr("no such file or folder; did you mean " + (dir_ / "mnist-1") + "?"));
  EXPECT_THAT(refusal([&] { require_there("--load", dir_ / "mnits-1/checkpoints/last.pt"); }),
              HasSubstr("did you mean " + (dir_ / "mnist-1/checkpoints/last.pt") + "?"))
      << "a folder on the way is misspelt";
  EXPECT_EQ(refusal([&] { require_there("--data", dir_ / "something-else", "; leave it out"); }),
            "--data " + (dir_ / "something-else") + ": no such file or folder; leave it out");
}

TEST_F(InputsTest, AFolderIsNoFile) {
  EXPECT_THAT(refusal([&] { require_file("--load", dir_.path(), "; name a checkpoint"); }),
              HasSubstr(": a folder, not a file; name a checkpoint"));
}

}  // namespace
}  // namespace lockstep::config
