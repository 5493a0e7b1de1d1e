#include "lockstep/bundle/runtime.h"

#include <gtest/gtest.h>

#include "lockstep/bundle/testing/places.h"

namespace lockstep::bundle {
namespace {

struct Runtime : Places {
  void make_runtime(const std::string& versions) { write(root_ + "/lib/gcc/libstdc++.so.6", versions); }
};

TEST_F(Runtime, VersionsAreCompared) {
  write(dir_ / "library", std::string("GLIBCXX_3.4.9\0GLIBCXX_3.4.30\0GLIBCXX_3.4.22\0GLIBCXX_3.4\0", 57));
  EXPECT_EQ(newest_glibcxx(dir_ / "library"), 30);
  EXPECT_EQ(newest_glibcxx(dir_ / "none"), -1);
}

TEST_F(Runtime, TheNewerOneWins) {
  make_runtime("GLIBCXX_3.4.9");
  EXPECT_EQ(runtime_folder(root_), "");  // this machine's
  make_runtime("GLIBCXX_3.4.999");
  EXPECT_EQ(runtime_folder(root_), root_ + "/lib/gcc");
}

}  // namespace
}  // namespace lockstep::bundle
