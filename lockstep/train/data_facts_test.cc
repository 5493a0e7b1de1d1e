#include "lockstep/train/data_facts.h"

#include <gtest/gtest.h>

#include "lockstep/data/subset.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using testing_support::Blobs;

struct Files final : Blobs {
  Files() : Blobs(10) {}
  std::string fingerprint() const override { return "files"; }
  std::vector<Listed> listing() const override { return {{"cats/1.jpg", 3}}; }
};

TEST(DataFacts, TellOfAllParts) {
  const data::Splits opened{.train = std::make_shared<Blobs>(30), .test = std::make_shared<Files>()};
  const DataFacts facts = facts_of(opened);
  EXPECT_EQ(facts.fingerprints, (ByPart<std::string>{"blobs", "none", "files"}));
  EXPECT_EQ(facts.classes.count, 3);
  EXPECT_EQ(files_of(opened), (DataFiles{std::vector<Listed>(), std::vector<Listed>(), {{{"cats/1.jpg", 3}}}}));
}

TEST(DataFacts, DifferWhereBothAreKnown) {
  const DataFacts then{.fingerprints = {"files 1", "none", ""}}, now{.fingerprints = {"files 1", "files 2", "files 3"}};
  EXPECT_FALSE(differs(then, now, Part::kTrain));
  EXPECT_TRUE(differs(then, now, Part::kValidation)) << "a part that came later";
  EXPECT_FALSE(differs(then, now, Part::kTest)) << "not recorded";
}

TEST(DataFacts, AreToldByTheFileOrByFingerprints) {
  const DataFacts then{.fingerprints = {"files 1", "none", "files 3"}},
      now{.fingerprints = {"files 2", "none", "files 4"}};
  const DataFiles listed{std::vector<Listed>(), std::vector<Listed>(), std::vector<Listed>()};
  DataFiles more = listed;
  for (auto& part : more) part = {{"cats/1.jpg", 3}};
  EXPECT_EQ(difference(then, now, Part::kTrain, listed, more), "cats/1.jpg was added");
  EXPECT_EQ(difference(then, now, Part::kTest, more, listed), "test part: cats/1.jpg is gone");
  EXPECT_EQ(difference(then, now, Part::kTest), "test part: files 3, and these are files 4");
  EXPECT_EQ(difference(then, now, Part::kTrain, {}, more), "files 1, and these are files 2") << "no list of then";
  EXPECT_EQ(difference(then, now, Part::kTrain, more, more), "files 1, and these are files 2") << "as masks' values";
}

}  // namespace
}  // namespace lockstep::train
