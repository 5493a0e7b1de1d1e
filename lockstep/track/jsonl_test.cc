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
  const Cut cut = copy_jsonl(path_, path_, 3);
  EXPECT_THAT(cut.evaluated, IsEmpty());
  EXPECT_EQ(cut.dropped_to, 5);
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  EXPECT_EQ(copy_jsonl(path_, path_, 3).dropped_to, 0);
  EXPECT_THAT(copy_jsonl(path_ + ".none", path_ + ".none", 3).evaluated, IsEmpty());
  EXPECT_NE(access((path_ + ".none").c_str(), F_OK), 0);
}

TEST_F(Jsonl, IsCopiedUpToAStep) {
  JsonlSink sink(path_ + ".parent");
  for (int step = 1; step <= 5; ++step) sink.write({{"step", step}});
  EXPECT_EQ(copy_jsonl(path_ + ".parent", path_, 2).dropped_to, 5);
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n");
  std::ostringstream parent;
  parent << std::ifstream(path_ + ".parent").rdbuf();
  EXPECT_NE(parent.str().find("{\"step\":5}\n"), std::string::npos) << "it stays as it is";
  unlink((path_ + ".parent").c_str());
}

TEST_F(Jsonl, KnowsAnEvaluationOfTheLastStep) {
  JsonlSink sink(path_);
  for (const char* split : {"validation", "test"}) sink.write({{"kind", "eval"}, {"step", 3}, {"split", split}});
  EXPECT_THAT(copy_jsonl(path_, path_, 4).evaluated, IsEmpty());
  EXPECT_THAT(copy_jsonl(path_, path_, 3).evaluated, ElementsAre("validation", "test"));
}

TEST_F(Jsonl, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(JsonlSink("/nonexistent/metrics.jsonl"), IoError); }

}  // namespace
}  // namespace lockstep::track
