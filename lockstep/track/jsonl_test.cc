#include "lockstep/track/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"

namespace lockstep::track {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Jsonl : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "metrics." + std::to_string(getpid()) + ".jsonl";
  void TearDown() override { unlink(path_.c_str()); }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
};

TEST_F(Jsonl, AppendsALineARecord) {
  JsonlSink(path_).write({{"kind", "train"}, {"step", 1}, {"loss", 0.5}});
  JsonlSink(path_).write({{"kind", "eval"}, {"step", 1}, {"loss", std::nan("")}});
  EXPECT_EQ(text(), "{\"kind\":\"train\",\"step\":1,\"loss\":0.5}\n{\"kind\":\"eval\",\"step\":1,\"loss\":null}\n");
}

TEST_F(Jsonl, IsCutBackToAStep) {
  JsonlSink sink(path_);
  for (int step = 1; step <= 5; ++step) sink.write({{"step", step}});
  std::ofstream(path_, std::ios::app) << "{\"step\": 2, \"half";
  const Cut cut = cut_jsonl(path_, 3);
  EXPECT_THAT(cut.evaluated, IsEmpty());
  EXPECT_EQ(cut.dropped_to, 5);
  EXPECT_EQ(cut.text, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  EXPECT_FALSE(cut.whole);
  EXPECT_FALSE(cut_jsonl(path_ + ".none", 3).is_there);
}

TEST_F(Jsonl, IsWholeWhereNothingIsCut) {
  JsonlSink sink(path_);
  for (int step = 1; step <= 3; ++step) sink.write({{"step", step}});
  const Cut cut = cut_jsonl(path_, 3);
  EXPECT_TRUE(cut.is_there && cut.whole);
  EXPECT_EQ(cut.text, text());
  EXPECT_EQ(cut.dropped_to, 0);
  std::ofstream(path_, std::ios::app) << "{\"step\"";
  EXPECT_FALSE(cut_jsonl(path_, 3).whole) << "half a line";
}

// As where a disk fails: what was not read must not count as cut.
TEST_F(Jsonl, WhatCantBeReadIsAnError) {
  EXPECT_THROW(cut_jsonl(testing::TempDir(), 3), IoError);
  EXPECT_EQ(symlink(path_.c_str(), path_.c_str()), 0);  // to itself
  EXPECT_THROW(cut_jsonl(path_, 3), IoError);
}

TEST_F(Jsonl, KnowsAnEvaluationOfTheLastStep) {
  JsonlSink sink(path_);
  for (const char* split : {"validation", "test"}) sink.write({{"kind", "eval"}, {"step", 3}, {"split", split}});
  EXPECT_THAT(cut_jsonl(path_, 4).evaluated, IsEmpty());
  EXPECT_THAT(cut_jsonl(path_, 3).evaluated, ElementsAre("validation", "test"));
}

TEST_F(Jsonl, IsReadRecordByRecord) {
  JsonlSink sink(path_);
  for (int step = 1; step <= 2; ++step) sink.write({{"step", step}});
  std::ofstream(path_, std::ios::app) << "{\"step\": 3, \"half";
  std::vector<int> steps;
  const auto take = [&](const Record& record) { steps.push_back(record["step"]); };
  for_each_record(path_, take);
  EXPECT_THAT(steps, ElementsAre(1, 2));
  for_each_record(path_ + ".none", take);
  EXPECT_EQ(steps.size(), 2u);
}

TEST_F(Jsonl, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(JsonlSink("/nonexistent/metrics.jsonl"), IoError); }

}  // namespace
}  // namespace lockstep::track
