#include "lockstep/train/bad_sample_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/train/testing/tiny_parts.h"
#include "lockstep/train/testing/tiny_recipe.h"

namespace lockstep::train {
namespace {

using ::testing::StartsWith;

class Advice : public ::testing::Test {
 protected:
  Advice() { parts_.world->self().remedy.set(""); }
  std::string remedy() const { return parts_.world->self().remedy.get(); }
  Parts parts_ = testing_support::parts_of(std::make_shared<testing_support::TinyRecipe>());
};

TEST_F(Advice, NamesSkipBadForABadSample) {
  EXPECT_THAT(
      lockstep::testing_support::refusal<Error>([&] { with_advice(parts_, [] { throw DataError("7.jpg: torn"); }); }),
      StartsWith("7.jpg: torn (--skip-bad N passes over up to N such samples"));
  EXPECT_EQ(remedy(), "--skip-bad 2");
}

TEST_F(Advice, RaisesALimitThatWasPassed) {
  parts_.skipped = std::make_shared<data::SkippedSamples>(1);
  const auto meet = [&](const std::string& name) {
    const std::vector<data::BadSample> met = {{name, name + ": torn"}};
    return lockstep::testing_support::refusal<Error>([&] { with_advice(parts_, [&] { parts_.skipped->add(met); }); });
  };
  EXPECT_EQ(meet("a"), "");
  EXPECT_EQ(remedy(), "");
  EXPECT_THAT(meet("b"), StartsWith("2 samples can't be read, and skip-bad passes over 1"));
  EXPECT_EQ(remedy(), "--skip-bad 4");
}

TEST_F(Advice, IsNoneForOtherErrors) {
  EXPECT_EQ(lockstep::testing_support::refusal<Error>(
                [&] { with_advice(parts_, [] { throw IoError("the disk is lost"); }); }),
            "the disk is lost");
  parts_.skipped = std::make_shared<data::SkippedSamples>(1);
  EXPECT_EQ(lockstep::testing_support::refusal<Error>(
                [&] { with_advice(parts_, [] { throw DataError("none can be read"); }); }),
            "none can be read");
  EXPECT_EQ(remedy(), "");
}

}  // namespace
}  // namespace lockstep::train
