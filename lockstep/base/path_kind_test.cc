#include "lockstep/base/path_kind.h"

#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep {
namespace {

TEST(PathKind, FollowsLinks) {
  const testing_support::TempDir dir;
  const std::filesystem::path folder = dir.path(), file = folder / "file", link = folder / "link",
                              lost = folder / "lost";
  std::ofstream(file) << "x";
  std::filesystem::create_symlink(file, link);
  std::filesystem::create_symlink(folder / "none", lost);
  for (const auto& [path, there, is_a_folder, is_a_file] : {std::tuple(folder, true, true, false),
                                                            {file, true, false, true},
                                                            {link, true, false, true},
                                                            {lost, false, false, false},
                                                            {folder / "none", false, false, false},
                                                            {file / "below", false, false, false}}) {
    EXPECT_EQ(is_there(path), there) << path;
    EXPECT_EQ(is_folder(path), is_a_folder) << path;
    EXPECT_EQ(is_file(path), is_a_file) << path;
  }
}

}  // namespace
}  // namespace lockstep
