#include "lockstep/train/inspection/metric_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MetricComparisonTest : public testing::Test {
 protected:
  MetricComparison compare(const std::string& a, const std::string& b) {
    std::ofstream(dir_ / "a") << a;
    std::ofstream(dir_ / "b") << b;
    return compare_metrics(dir_ / "a", dir_ / "b");
  }
  static std::string train(int step, double loss, const std::string& more = "") {
    return cat(R"({"kind":"train","step":)", step, R"(,"loss":)", loss, more, "}\n");
  }
  testing_support::TempDir dir_;
};

TEST_F(MetricComparisonTest, TimesAndCommunicationDoNotCount) {
  const auto found =
      compare(train(1, 2.5, R"(,"time":1,"seconds":0.1,"samples_per_second":9,"data_seconds":1,"data":{"wait":1})") +
                  "{\"kind\":\"comm\",\"step\":1,\"waited_ms\":3}\n" + train(2, 2.4),
              train(1, 2.5, R"(,"time":2,"seconds":0.2,"samples_per_second":8,"data_seconds":2)") + train(2, 2.4));
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(found.records, 2);
}

TEST_F(MetricComparisonTest, TheFirstRecordThatDiffersWithBothValues) {
  const auto found = compare(train(1, 3) + train(2, 2, R"(,"lr":0.1)") + train(3, 1),
                             train(1, 3) + train(2, 2.5, R"(,"lr":0.1,"skipped":true)") + train(3, 1.5));
  EXPECT_FALSE(found.equal());
  EXPECT_EQ(found.step, 2);
  EXPECT_EQ(found.kind, "train");
  EXPECT_EQ(found.records, 3);
  EXPECT_EQ(found.differing, 2);
  EXPECT_THAT(found.fields, ElementsAre(TwoValues{"loss", 2, 2.5}, TwoValues{"skipped", nullptr, true}));
}

TEST_F(MetricComparisonTest, RunsOfOtherLengthsAndEvaluations) {
  const std::string eval = R"({"kind":"eval","split":"test","step":1,"loss":1})"
                           "\n";
  const auto found = compare(train(1, 3) + eval + train(2, 2) + train(3, 1), train(1, 3) + train(2, 2));
  EXPECT_FALSE(found.equal());
  EXPECT_EQ(found.step, 0);
  EXPECT_EQ(found.only_a.count, 2);
  EXPECT_EQ(found.only_b.count, 0);
  EXPECT_EQ(found.only_a.first, 1);
  EXPECT_EQ(found.only_a.last, 3);
  const auto other = compare(train(2, 2), train(1, 3) + eval + train(2, 2));
  EXPECT_EQ(other.only_b.count, 2);
  EXPECT_EQ(other.records, 1);
}

TEST_F(MetricComparisonTest, HalfALineAndAFileThatIsNotThere) {
  const auto found = compare(train(1, 3) + "{\"kind\":\"tr", train(1, 3));
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(compare_metrics(dir_ / "a", dir_ / "none").only_a.count, 1);
}

TEST(Results, WithoutThoseOfTheMachine) {
  const nlohmann::ordered_json a = {{"loss", 1}, {"seconds", 3}, {"world_size", 2}, {"metrics", {{"accuracy", 0.5}}}};
  nlohmann::ordered_json b = {{"loss", 1}, {"seconds", 4}, {"world_size", 1}, {"metrics", {{"accuracy", 0.5}}}};
  EXPECT_THAT(compare_results(a, b), IsEmpty());
  b["metrics"]["accuracy"] = 0.6;
  EXPECT_EQ(compare_results(a, b).at(0).name, "metrics");
}

}  // namespace
}  // namespace lockstep::train
