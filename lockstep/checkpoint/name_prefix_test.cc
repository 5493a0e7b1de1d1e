#include "lockstep/checkpoint/name_prefix.h"

#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

TEST(WrappersPrefix, IsWhatAllNamesOfTheFileHave) {
  EXPECT_EQ(wrappers_prefix({"module.a", "module.b"}, {"a", "b"}), "module.");
  EXPECT_EQ(wrappers_prefix({"_orig_mod.a"}, {"a"}), "_orig_mod.");
  EXPECT_EQ(wrappers_prefix({"module.a", "b"}, {"a", "b"}), "");
  EXPECT_EQ(wrappers_prefix({"modules.a"}, {"a"}), "");
  EXPECT_EQ(wrappers_prefix({}, {"a"}), "");
}

TEST(WrappersPrefix, NestsInEitherOrder) {
  EXPECT_EQ(wrappers_prefix({"module._orig_mod.a", "module._orig_mod.b"}, {"a"}), "module._orig_mod.");
  EXPECT_EQ(wrappers_prefix({"_orig_mod.module.a"}, {"a"}), "_orig_mod.module.");
  EXPECT_EQ(wrappers_prefix({"module._orig_mod.a", "module.b"}, {"a"}), "module.");
}

TEST(WrappersPrefix, IsNoneThatTheModelHasItself) {
  EXPECT_EQ(wrappers_prefix({"module.a"}, {"module.a"}), "");
  EXPECT_EQ(wrappers_prefix({"_orig_mod.module.a"}, {"module.a"}), "_orig_mod.");
  EXPECT_EQ(wrappers_prefix({"module.module.a"}, {}), "module.module.");
}

TEST(WithoutPrefix, LeavesOtherNames) {
  EXPECT_EQ(without_prefix("model.a", "model."), "a");
  EXPECT_EQ(without_prefix("a.model.b", "model."), "a.model.b");
}

}  // namespace
}  // namespace lockstep::checkpoint
