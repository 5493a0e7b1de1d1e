#include "lockstep/track/jsonl.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"

namespace lockstep::track {
namespace {

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
  EXPECT_FALSE(cut_jsonl(path_, 3));
  EXPECT_EQ(text(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
  EXPECT_FALSE(cut_jsonl(path_ + ".none", 3));
}

TEST_F(Jsonl, KnowsAnEvaluationOfTheLastStep) {
  JsonlSink(path_).write({{"kind", "eval"}, {"step", 3}});
  EXPECT_FALSE(cut_jsonl(path_, 4));
  EXPECT_TRUE(cut_jsonl(path_, 3));
}

TEST_F(Jsonl, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(JsonlSink("/nonexistent/metrics.jsonl"), IoError); }

}  // namespace
}  // namespace lockstep::track
