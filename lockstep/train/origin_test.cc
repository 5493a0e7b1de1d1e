#include "lockstep/train/origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Bent : RecipeDescription {
  int turns = 2;
  std::string name() const override { return "bent"; }
  void declare(config::OptionSet& options) override {
    options.number("turns", "N", "", &turns, 1, 9, config::Effect::kIdentity);
  }
};

class OriginTest : public testing::Test {
 protected:
  OriginTest() { options_.recipe = "bent"; }

  Origin origin() { return {RunRows(options_, recipe_).record(), {3, 64, 64}, 600}; }

  // Returns the error for a run with the present options that resumes from `checkpoint`.
  std::string refusal(const Origin& checkpoint) {
    return testing_support::refusal([&] { RunRows(options_, recipe_).check(origin(), checkpoint, "a.pt"); });
  }

  TrainOptions options_;
  Bent recipe_;
};

TEST_F(OriginTest, TheFirstDifferentSettingIsNamed) {
  const Origin before = origin();
  EXPECT_EQ(refusal(before), "");
  options_.parallel.lanes = 8;
  EXPECT_EQ(
      refusal(before),
      "a.pt: it was trained with --lanes 0, this run has --lanes 8; use the same, or start a new run with --load");
  options_.parallel.lanes = 0;
  recipe_.turns = 3;
  EXPECT_THAT(refusal(before), HasSubstr("it was trained with --turns 2, this run has --turns 3"));
  recipe_.turns = 2;
  options_.data.validation = 10;
  EXPECT_THAT(refusal(before), HasSubstr("it was trained with no --validation, this run has --validation 10"));
}

TEST_F(OriginTest, FactsOfTheDataMustAgree) {
  Origin before = origin();
  before.sample_shape = {3, 32, 32};
  EXPECT_THAT(refusal(before), HasSubstr("samples of 3×32×32, this run has 3×64×64"));
  before = origin();
  before.train_samples = 599;
  EXPECT_THAT(refusal(before), HasSubstr("training samples 599, this run has 600"));
}

TEST_F(OriginTest, OtherDataOfTheSameSizeAreRefused) {
  Origin before = origin(), now = origin();
  const auto refusal_now = [&] {
    return testing_support::refusal([&] { RunRows(options_, recipe_).check(now, before, "a.pt"); });
  };
  for (const Part part : kParts) {
    of(now.data.fingerprints, part) = "files 2";
    EXPECT_EQ(refusal_now(), "") << "a checkpoint that does not say its data's";
    of(before.data.fingerprints, part) = "files 2";
    EXPECT_EQ(refusal_now(), "") << "a copy";
    of(before.data.fingerprints, part) = "files 1";
    EXPECT_EQ(refusal_now(),
              cat("a.pt: it was trained on other data: ", prefix_of(part),
                  "files 1, and these are files 2; give the same --data, or start a new run with --load"));
    of(before.data.fingerprints, part) = "";
  }
  before.train_samples = 599;
  EXPECT_THAT(refusal_now(), HasSubstr("training samples 599"));
}

TEST_F(OriginTest, ATrajectoryMayChangeAndIsTold) {
  options_.rate.lr = 0.1;
  const Origin before = origin();
  options_.rate.lr = 0.05;
  options_.rate.warmup = 3;
  options_.keep = 9;
  EXPECT_EQ(refusal(before), "");
  EXPECT_THAT(RunRows(options_, recipe_).changes(origin(), before),
              ElementsAre("--lr 0.1 -> 0.05", "no --warmup -> 3"));
}

TEST_F(OriginTest, AChangeOfAnOptionThatCameLaterIsTold) {
  Origin before = origin();
  std::erase_if(before.options, [](const auto& option) { return option.name == "clip"; });
  EXPECT_THAT(RunRows(options_, recipe_).changes(origin(), before), ElementsAre());
  options_.optimizer.clip = 1;
  EXPECT_THAT(RunRows(options_, recipe_).changes(origin(), before), ElementsAre("--clip 0 -> 1"));
}

TEST_F(OriginTest, AnotherVersionIsTold) {
  Origin before = origin(), now = origin();
  now.versions = versions_of_build();
  EXPECT_THAT(now.versions, ::testing::MatchesRegex("lockstep [0-9.]+, libtorch 2\\.[0-9.]+.*"));
  EXPECT_THAT(RunRows(options_, recipe_).changes(now, before), ElementsAre()) << "not recorded";
  before.versions = "lockstep 0.0.9, libtorch 2.10.0";
  EXPECT_THAT(RunRows(options_, recipe_).changes(now, before), ElementsAre(before.versions + " -> " + now.versions));
}

TEST_F(OriginTest, AForkNamesItsParentInItsFile) {
  EXPECT_THAT(RunRows(options_, recipe_).to_toml(), testing::Not(HasSubstr("parent")));
  options_.parent = "runs/a/checkpoints/step-000200.pt";
  EXPECT_THAT(RunRows(options_, recipe_).to_toml(), HasSubstr("parent = 'runs/a/checkpoints/step-000200.pt'\n"));
}

TEST_F(OriginTest, AnOptionThatCameLaterHadItsDefault) {
  Origin before = origin();
  std::erase_if(before.options, [](const auto& option) { return option.name == "ema"; });
  EXPECT_EQ(refusal(before), "");
  options_.optimizer.ema = 0.9;
  EXPECT_THAT(refusal(before), HasSubstr("trained with --ema 0, this run has --ema 0.9"));
  std::erase_if(before.options, [](const auto& option) { return option.name == "turns"; });
  options_.optimizer.ema = 0;
  EXPECT_THAT(refusal(before), HasSubstr("trained with no --turns, this run has --turns 2"));
}

TEST_F(OriginTest, TheHeadersTexts) {
  options_.rate.lr = 0.5;
  options_.quiet = true;
  const RunRows rows(options_, recipe_);
  EXPECT_EQ(rows.recipe_text(), "--turns 2");
  EXPECT_EQ(rows.chosen_text({}), "--lr 0.5");
  EXPECT_EQ(rows.chosen_text({{"lr", "0.5"}}), "") << "the recipe's own";
  EXPECT_THAT(rows.to_toml(), HasSubstr("\nturns = 2\n"));
}

TEST_F(OriginTest, ARecordKnowsItsNumbers) {
  options_.seed = 12;
  EXPECT_EQ(origin().number("seed"), 12);
  EXPECT_EQ(origin().held_out().percent, 0);
  options_.data.validation = 12.5;
  options_.data.hold_out = "7.png";
  EXPECT_EQ(origin().held_out().percent, 12.5);
  EXPECT_EQ(origin().held_out().files, "7.png");
  EXPECT_THROW(origin().number("batch-size"), ConfigError);
  EXPECT_THROW(origin().option("no-such"), DataError);
}

}  // namespace
}  // namespace lockstep::train
