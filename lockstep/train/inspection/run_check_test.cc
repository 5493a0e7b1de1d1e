#include "lockstep/train/inspection/run_check.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/checkpoint_store.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using State = FileCheck::State;

class RunCheckTest : public testing::Test {
 protected:
  RunCheckTest() {
    checkpoint::CheckpointStore store(dir_ / "checkpoints");
    for (const int64_t step : {1, 2}) {
      store.save(step, checkpoint::Dict{{"weight", at::full({100}, 1.0 + static_cast<double>(step))}, {"step", step}});
    }
    store.mark_best(1);
    write("config.toml", "lr = 0.1\n");
    write("metrics.jsonl", "{\"step\":1}\n{\"step\":2}\n");
    write("final.json", R"({"steps": 2})");
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(dir_ / name) << text; }
  void damage(const std::string& name) {
    std::fstream file(dir_ / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(dir_ / name) / 2));
    file.put('\xff');
  }
  // "whole config.toml" …, but for the folder.
  std::string states() {
    std::string text;
    for (const FileCheck& check : check_files(dir_.path())) {
      text +=
          text_of(check).substr(0, text_of(check).find(' ')) + ' ' + check.file.substr(dir_.path().size() + 1) + '\n';
    }
    return text;
  }
  std::string about(const std::string& name) {
    for (const FileCheck& check : check_files(dir_.path())) {
      if (check.file == dir_ / name) return check.about;
    }
    return "not looked at";
  }

  testing_support::TempDir dir_;
};

TEST_F(RunCheckTest, OfAWholeRun) {
  EXPECT_EQ(
      states(),
      "whole config.toml\nwhole metrics.jsonl\nwhole final.json\nwhole checkpoints/best.pt\nwhole checkpoints/last.pt\n"
      "whole checkpoints/step-000001.pt\nwhole checkpoints/step-000002.pt\n");
  EXPECT_THAT(about("checkpoints/step-000001.pt"), HasSubstr("1 tensor, 1 value, "));
  EXPECT_EQ(about("checkpoints/best.pt"), "leads to step-000001.pt");
  EXPECT_EQ(about("metrics.jsonl"), "2 records");
  EXPECT_EQ(count(check_files(dir_.path()), State::kDamaged), 0u);
}

TEST_F(RunCheckTest, NamesEveryDamagedFile) {
  damage("checkpoints/step-000001.pt");
  fs::remove(dir_ / "checkpoints/step-000002.pt");
  write("metrics.jsonl", "{\"step\":1}\nnonsense\n{\"step\":2}\n");
  write("final.json", R"({"steps": )");
  write("config.toml", "lr = = 1\n");
  EXPECT_EQ(states(),
            "damaged config.toml\ndamaged metrics.jsonl\ndamaged final.json\ndamaged checkpoints/best.pt\n"
            "damaged checkpoints/last.pt\ndamaged checkpoints/step-000001.pt\n");
  EXPECT_THAT(about("checkpoints/step-000001.pt"), HasSubstr(": damaged (CRC error)"));
  EXPECT_EQ(about("checkpoints/best.pt"), "leads to step-000001.pt, which is damaged");
  EXPECT_EQ(about("checkpoints/last.pt"), "leads to step-000002.pt, which is not there");
  EXPECT_EQ(about("metrics.jsonl"), "line 2 is no JSON object");
}

TEST_F(RunCheckTest, WhatAKilledRunLeavesIsNoDamage) {
  write("checkpoints/step-000003.pt.tmp", "half");
  write("checkpoints/step-000000.pt.damaged", "half");
  write("metrics.jsonl", "{\"step\":1}\n{\"st");
  const std::string found = states();
  EXPECT_THAT(found, HasSubstr("left checkpoints/step-000003.pt.tmp\n"));
  EXPECT_THAT(found, HasSubstr("set checkpoints/step-000000.pt.damaged\n"));
  EXPECT_THAT(about("metrics.jsonl"), HasSubstr("1 record and half a line"));
  EXPECT_EQ(count(check_files(dir_.path()), State::kDamaged), 0u);
  EXPECT_EQ(json_of(check_files(dir_.path())).back()["state"], "left_over");
}

TEST_F(RunCheckTest, OfOneFileAndOfAFolderOfCheckpoints) {
  EXPECT_EQ(check_files(dir_ / "checkpoints").size(), 4u);
  const auto one = check_files(dir_ / "checkpoints/last.pt");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].state, State::kWhole);
  fs::create_directory(dir_ / "empty");
  EXPECT_THROW(check_files(dir_ / "empty"), ConfigError);
}

}  // namespace
}  // namespace lockstep::train
