// `lockstep train --track csv,tensorboard`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "lockstep/track/testing/read_events.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using track::testing_support::Message;

const Words kTracked = {"--track", "csv,tensorboard"};

std::vector<std::string> event_files(const std::string& run) {
  std::set<std::string> files;
  for (const auto& each : fs::directory_iterator(run)) {
    if (each.path().filename().string().starts_with("events.out.tfevents.")) files.insert(each.path());
  }
  return {files.begin(), files.end()};
}

// What the event files say, but for times, by tag and step.
std::map<std::string, std::string> shown_in(const std::string& run) {
  std::map<std::string, std::string> shown;
  for (const std::string& file : event_files(run)) {
    for (const auto& each : track::testing_support::summary_values(track::testing_support::read_events(file))) {
      const bool is_time = each.tag.find("seconds") != std::string::npos || each.tag == "train/samples_per_second" ||
                           each.tag.starts_with("train/data/") || each.tag.starts_with("comm/");
      if (is_time || each.tag == "config" || each.tag.starts_with("_hparams_/")) continue;
      std::string& bytes = shown[each.tag + "@" + std::to_string(each.step)];
      EXPECT_EQ(bytes, "") << each.tag << " twice";
      for (const auto& [field, numbers] : each.value.numbers)
        bytes += std::to_string(field) + ':' + std::to_string(numbers[0]);
      for (const auto& [field, texts] : each.value.texts) bytes += std::to_string(field) + ':' + texts[0];
    }
  }
  return shown;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void run_on(const Words& words) {
  const auto result = lockstep(train_words(words));
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

TEST(Tracking, ShowsTheSameAtAnyNumberOfRanksAndChangesNoBits) {
  const TempDir dir;
  std::map<std::string, std::string> one;
  for (const char* nproc : {"1", "2", "4"}) {
    const std::string run = dir / nproc;
    run_on(kTracked +
           Words{"--histograms-every", "1", "--steps", std::to_string(kSteps), "--nproc", nproc, "--out", run});
    EXPECT_EQ(outcome_of(run), outcome_of(finished_run())) << nproc << " ranks";
    const auto shown = shown_in(run);
    if (one.empty()) one = shown;
    EXPECT_EQ(shown.size(), one.size());
    for (const auto& [what, bytes] : one) EXPECT_TRUE(shown.contains(what) && shown.at(what) == bytes) << what;
  }
  for (const char* what :
       {"train/loss@1", "train/lr@12", "test/accuracy@12", "weights/conv1.weight@3", "gradients/conv1.weight@12"}) {
    EXPECT_TRUE(one.contains(what)) << what;
  }
}

TEST(Tracking, TheTableHasTheRecordsOfARunThatGoesOn) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on(kTracked + Words{"--steps", "5", "--save-every", "2", "--out", run});
  fs::remove(run + "/checkpoints/step-000005.pt");  // as if the run had been killed at step 5
  fs::remove(run + "/final.json");
  run_on({"--steps", "7", "--resume", run});
  size_t rows = 0;
  for (const std::string& line : lines_of(run + "/metrics.jsonl")) {
    rows += nlohmann::json::parse(line).at("kind") != "comm" ? 1 : 0;
  }
  const auto table = lines_of(run + "/metrics.csv");
  ASSERT_EQ(table.size(), rows + 1);
  EXPECT_TRUE(table[0].starts_with("kind,split,step,epoch,loss,lr,")) << table[0];
  EXPECT_NE(table[0].find(",accuracy"), std::string::npos);
  EXPECT_TRUE(table[1].starts_with("train,,1,1,")) << table[1];
  ASSERT_EQ(event_files(run).size(), 2u);
  const auto events = track::testing_support::read_events(event_files(run)[1]);
  EXPECT_EQ(events.at(1).whole(2), 5) << "what the first file says of step 5 is dropped";
}

TEST(Tracking, AForkHasItsParentsHistory) {
  const TempDir dir;
  const std::string run = dir / "run", fork = dir / "fork";
  run_on({"--steps", "4", "--save-every", "2", "--out", run});
  run_on(kTracked + Words{"--steps", "3", "--resume", run + "/checkpoints/step-000002.pt", "--out", fork});
  const auto shown = shown_in(fork);
  for (const char* what : {"train/loss@1", "train/loss@2", "train/loss@3"}) EXPECT_TRUE(shown.contains(what)) << what;
  EXPECT_TRUE(lines_of(fork + "/metrics.csv").at(1).starts_with("train,,1,"));
}

TEST(Tracking, ARunThatBeginsAnewDropsWhatTheOldOneShowed) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on(kTracked + Words{"--steps", "2", "--out", run});
  fs::remove_all(run + "/checkpoints");  // as if it had been killed before its first
  run_on({"--steps", "1", "--out", run, "--overwrite"});
  EXPECT_FALSE(fs::exists(run + "/metrics.csv"));
  EXPECT_EQ(event_files(run).size(), 0u);
}

TEST(Tracking, AFileThatCantBeWrittenEndsTheRun) {
  const TempDir dir;
  const std::string run = dir / "run";
  run_on({"--steps", "2", "--out", run});
  fs::create_directory(run + "/metrics.csv");
  const auto result = lockstep(train_words({"--steps", "4", "--resume", run}) + kTracked);
  EXPECT_EQ(result.exit_code, 74);
  EXPECT_THAT(result.err, ::testing::HasSubstr(run + "/metrics.csv: "));
  fs::remove(run + "/metrics.csv");
  run_on(Words{"--steps", "4", "--resume", run} + kTracked);
  EXPECT_EQ(steps_logged(run), first_steps(4));
}

}  // namespace
}  // namespace lockstep::e2e
