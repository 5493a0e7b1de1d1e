#include "lockstep/track/csv_sink.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/file_size_limit.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/track/jsonl.h"

namespace lockstep::track {
namespace {

const std::string kFixed = "kind,split,step,epoch,loss,lr,gradient_norm,time,seconds,samples_per_second,data_seconds";

class Csv : public testing::Test {
 protected:
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(csv_).rdbuf();
    return out.str();
  }
  void write(CsvSink& sink, const Record& record) const {
    JsonlSink(jsonl_).write(record);
    sink.write(record);
  }

  testing_support::TempDir dir_;
  std::string csv_ = dir_ / "metrics.csv", jsonl_ = dir_ / "metrics.jsonl";
};

TEST_F(Csv, HasARowForEachStepAndEvaluation) {
  CsvSink sink(csv_, jsonl_);
  write(sink, {{"kind", "train"}, {"step", 1}, {"loss", 0.1}, {"lr", 0.01}});
  write(sink, {{"kind", "comm"}, {"step", 1}, {"bytes", 8}});
  write(sink, {{"kind", "eval"}, {"split", "test"}, {"step", 1}, {"loss", std::nan("")}});
  EXPECT_EQ(text(), kFixed + "\ntrain,,1,,0.1,0.01,,,,,\neval,test,1,,,,,,,,\n");
}

TEST_F(Csv, AColumnThatTurnsUpLaterIsAddedToAllRows) {
  CsvSink sink(csv_, jsonl_);
  write(sink, {{"kind", "train"}, {"step", 1}, {"data", {{"wait", 0.5}}}});
  write(sink, {{"kind", "eval"}, {"step", 1}, {"dice_per_class", {1, 0.5}}});
  write(sink, {{"kind", "train"}, {"step", 2}, {"overflow", "a, \"b\""}});
  write(sink, {{"kind", "train"}, {"step", 3}});
  EXPECT_EQ(text(), kFixed + ",data.wait,dice_per_class.0,dice_per_class.1,overflow\n" +
                        "train,,1,,,,,,,,,0.5,,,\neval,,1,,,,,,,,,,1,0.5,\n" +
                        "train,,2,,,,,,,,,,,,\"a, \"\"b\"\"\"\ntrain,,3,,,,,,,,,,,,\n");
}

TEST_F(Csv, HoldsWhatCameBeforeIt) {
  JsonlSink(jsonl_).write({{"kind", "train"}, {"step", 1}});
  std::ofstream(csv_) << "a table of later steps, or half a line";
  CsvSink sink(csv_, jsonl_);
  EXPECT_EQ(text(), kFixed + "\ntrain,,1,,,,,,,,\n");
}

TEST_F(Csv, AFullDiskIsAnError) {
  CsvSink sink(csv_, jsonl_);
  const Record record = {{"kind", "train"}, {"step", 1}};
  JsonlSink(jsonl_).write(record);
  const testing_support::FileSizeLimit limit(100);
  try {
    sink.write(record);
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), csv_ + ": can't be written: File too large (errno 27); free some space, then --resume");
  }
}

TEST_F(Csv, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(CsvSink(dir_ / "none/metrics.csv", jsonl_), IoError); }

}  // namespace
}  // namespace lockstep::track
