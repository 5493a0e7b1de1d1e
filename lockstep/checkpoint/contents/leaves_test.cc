#include "lockstep/checkpoint/contents/leaves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::checkpoint {
namespace {

using testing::ElementsAre;

const Value kTree =
    Dict{{"z", List{1, Tuple{{2.5, "x"}}}}, {"a/b", Dict{{0, Value()}}}, {"empty", List{}}, {"end", true}};

TEST(Leaves, AreInTheFilesOrderWithTheirKeys) {
  std::vector<std::string> paths, walked;
  for (const Leaf& leaf : leaves_of(kTree)) paths.push_back(leaf.path());
  for_each_leaf(kTree, [&](const std::string& path, const Value&) { walked.push_back(path); });
  EXPECT_THAT(paths, ElementsAre("z/0", "z/1/0", "z/1/1", "a/b/0", "end"));
  EXPECT_EQ(walked, paths);
  EXPECT_THAT(leaves_of(kTree)[3].keys, ElementsAre("a/b", "0"));
}

TEST(Leaves, AValueAloneIsOne) {
  const Value number = 4;
  ASSERT_EQ(leaves_of(number).size(), 1u);
  EXPECT_EQ(leaves_of(number)[0].path(), "");
  EXPECT_EQ(leaves_of(number)[0].value, &number);
}

TEST(PathChoice, TakesByBeginningOrByPattern) {
  EXPECT_TRUE(PathChoice().takes("any/thing"));
  EXPECT_TRUE(PathChoice("model/conv1").takes("model/conv1.weight"));
  EXPECT_FALSE(PathChoice("conv1").takes("model/conv1.weight"));
  EXPECT_TRUE(PathChoice("*.weight").takes("model/conv1.weight"));
  EXPECT_FALSE(PathChoice("*.weight").takes("model/conv1.weight_scale"));
  EXPECT_TRUE(PathChoice("model/conv?.bias").takes("model/conv2.bias"));
  EXPECT_FALSE(PathChoice("model/conv?.bias").takes("model/conv12.bias"));
}

}  // namespace
}  // namespace lockstep::checkpoint
