#include "lockstep/checkpoint/name_prefix.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

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

TEST(PrefixBefore, IsWhatAllOfAModelsNamesHaveInAFile) {
  EXPECT_EQ(prefix_before({"a.w", "b"}, {"loss.w", "net.a.w", "net.b"}), "net.");
  EXPECT_EQ(prefix_before({"a", "b"}, {"x.a", "y.a", "y.b"}), "y.");
  EXPECT_EQ(prefix_before({"a", "b"}, {"net.a", "other.b"}), "");
  EXPECT_EQ(prefix_before({"a"}, {"neta"}), "");
  EXPECT_EQ(prefix_before({}, {"net.a"}), "");
}

TEST(WithoutPrefix, TakesThePointWithIt) {
  EXPECT_THROW(without_prefix(Dict{{"model.a", 1}, {"model.b", 2}, {"loss", 3}}, "model", "f"), ConfigError);
  EXPECT_NO_THROW(without_prefix(Dict{{"model.a", 1}}, "model.", "f"));
}

TEST(WithoutPrefix, LeavesOtherNames) {
  EXPECT_EQ(without_prefix("model.a", "model."), "a");
  EXPECT_EQ(without_prefix("a.model.b", "model."), "a.model.b");
  const StrippedState all = without_prefix(Dict{{"a", 1}, {"ab", 2}, {"b", 3}}, "a", "f");
  EXPECT_TRUE(all.state.contains("b") && all.state.size() == 1);
  EXPECT_EQ(all.left_out, (std::vector<std::string>{"a", "b"})) << "a value needs a name";
}

}  // namespace
}  // namespace lockstep::checkpoint
