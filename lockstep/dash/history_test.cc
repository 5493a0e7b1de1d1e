#include "lockstep/dash/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::dash {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HistoryTest : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  void write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  const Curve& curve(const std::string& name) { return history_.curves().at(name); }

  testing_support::TempDir dir_;
  std::string path_ = dir_ / "metrics.jsonl";
  History history_{path_};
};

std::string step(int number, const std::string& loss) {
  return "{\"kind\":\"train\",\"step\":" + std::to_string(number) + ",\"epoch\":1,\"loss\":" + loss + "}\n";
}

TEST_F(HistoryTest, AFileThatIsNotThereYetHasNoCurves) {
  history_.refresh();
  EXPECT_THAT(history_.curves(), IsEmpty());
  append(step(1, "2"));
  history_.refresh();
  EXPECT_THAT(curve("train/loss").values, ElementsAre(2));
}

TEST_F(HistoryTest, GrowsWithTheFileLineByLine) {
  append(step(1, "2") + "{\"kind\":\"train\",\"st");
  history_.refresh();
  EXPECT_THAT(curve("train/loss").steps, ElementsAre(1));
  append("ep\":2,\"loss\":1.5,\"data\":{\"wait\":0.25}}\n");
  history_.refresh();
  EXPECT_THAT(curve("train/loss").steps, ElementsAre(1, 2));
  EXPECT_THAT(curve("train/loss").values, ElementsAre(2, 1.5));
  EXPECT_THAT(curve("train/data.wait").values, ElementsAre(0.25));
  EXPECT_FALSE(history_.curves().contains("train/epoch"));
}

TEST_F(HistoryTest, EvaluationsAreToldByTheirData) {
  append("{\"kind\":\"eval\",\"split\":\"test\",\"step\":7,\"samples\":9,\"dice_per_class\":[0.5,0.75]}\n");
  history_.refresh();
  EXPECT_EQ(history_.curves().size(), 2U);
  EXPECT_THAT(curve("eval/test/dice_per_class.1").values, ElementsAre(0.75));
}

TEST_F(HistoryTest, ARunThatHasGoneBackWritesItsStepsOnceMore) {
  append(step(1, "3") + step(2, "2") + step(3, "1") + step(2, "5"));
  history_.refresh();
  EXPECT_THAT(curve("train/loss").steps, ElementsAre(1, 2));
  EXPECT_THAT(curve("train/loss").values, ElementsAre(3, 5));
}

TEST_F(HistoryTest, AFileThatIsCutBackIsReadAnew) {
  append(step(1, "3") + step(2, "2"));
  history_.refresh();
  write(step(1, "4"));
  history_.refresh();
  EXPECT_THAT(curve("train/loss").values, ElementsAre(4));
}

TEST_F(HistoryTest, AFileInItsPlaceIsReadAnew) {
  append(step(1, "3"));
  history_.refresh();
  const std::string other = dir_ / "other";
  std::ofstream(other) << step(1, "7") << step(2, "6");
  std::filesystem::rename(other, path_);
  history_.refresh();
  EXPECT_THAT(curve("train/loss").values, ElementsAre(7, 6));
}

TEST_F(HistoryTest, WhatIsNotFiniteIsCounted) {
  append(step(1, "3") + step(2, "null") + step(3, "1"));
  history_.refresh();
  EXPECT_THAT(curve("train/loss").steps, ElementsAre(1, 3));
  EXPECT_EQ(curve("train/loss").not_finite, 1);
}

TEST_F(HistoryTest, WhatIsNoRecordIsLeftOut) {
  append("rubbish\n[1]\n{\"kind\":5,\"step\":1}\n{\"kind\":\"train\",\"step\":\"x\"}\n\n{\"step\":1}\n" +
         step(1, "\"text\"") + step(2, "2"));
  history_.refresh();
  EXPECT_THAT(curve("train/loss").steps, ElementsAre(2));
}

TEST_F(HistoryTest, ALongFileIsReadWhole) {
  constexpr int kSteps = 5000;  // more than a read's bytes
  std::string text;
  for (int number = 1; number <= kSteps; ++number) text += step(number, std::to_string(number));
  append(text);
  history_.refresh();
  const Curve& loss = curve("train/loss");
  ASSERT_EQ(loss.values.size(), size_t{kSteps});
  for (int number = 1; number <= kSteps; ++number) ASSERT_EQ(loss.values[static_cast<size_t>(number - 1)], number);
}

}  // namespace
}  // namespace lockstep::dash
