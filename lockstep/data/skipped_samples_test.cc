#include "lockstep/data/skipped_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The line of the DataError with which the next add() ends.
std::string refusal_of(SkippedSamples& list) {
  try {
    list.add({});
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

// Two ranks: what the other one met comes from a text.
TEST(SkippedSamples, CountEachSampleOnceOverAllRanks) {
  std::string theirs;
  SkippedSamples list(3, [&](const std::string& own) { return std::vector<std::string>{own, theirs}; });
  EXPECT_EQ(list.add({{"a", "a: torn"}, {"b", "b: torn"}, {"a", "a: again"}}).size(), 2u);
  theirs = "0\nb\nb: torn\n0\nc\nc: empty\n";
  EXPECT_EQ(list.add({}), (std::vector<BadSample>{{"c", "c: empty"}}));
  theirs = "0\nd\nd: empty\n";
  EXPECT_EQ(refusal_of(list),
            "4 samples can't be read, and skip-bad passes over 3: d: empty; c: empty; b: torn; a: torn; "
            "raise skip-bad, or begin a new run without them");
  EXPECT_EQ(list.all().size(), 3u);
  EXPECT_EQ(list.met(), 4);
  theirs = "0\na\na: torn\n";
  EXPECT_TRUE(list.add({}).empty());
  theirs = "1\na\na: torn\n";
  EXPECT_THROW(list.add({}), DataError) << "another one of the same name";
  EXPECT_THROW(SkippedSamples(0), ConfigError);
}

TEST(SkippedSamples, OfARunThatGoesOnMayNotBeMoreThanItsLimit) {
  const std::vector<BadSample> three = {{"a", "a: torn"}, {"b", "b: torn"}, {"c", "c: torn"}};
  SkippedSamples enough(3), few(2);
  enough.restore(three);
  EXPECT_EQ(enough.all(), three);
  EXPECT_THROW(few.restore(three), ConfigError);
  EXPECT_TRUE(few.all().empty());
}

TEST(SkippedSamples, NameTheNewestWhereTheyAreMany) {
  std::string theirs;
  for (int i = 0; i < 25; ++i) theirs += cat(i, "\ns", i, "\ns", i, ": torn\n");
  SkippedSamples list(24, [&](const std::string&) { return std::vector<std::string>{theirs}; });
  const std::string refusal = refusal_of(list);
  EXPECT_THAT(refusal, HasSubstr("25 samples can't be read, and skip-bad passes over 24: s24: torn; s23: torn; "));
  EXPECT_THAT(refusal, EndsWith("s5: torn; and 5 more; raise skip-bad, or begin a new run without them"));
}

TEST(SkippedSamples, AreALineEach) {
  EXPECT_EQ(lines_of({{"a", "a: torn"}, {"b", "b: torn"}}), "a: torn\nb: torn\n");
  EXPECT_EQ(lines_of({}), "");
}

}  // namespace
}  // namespace lockstep::data
