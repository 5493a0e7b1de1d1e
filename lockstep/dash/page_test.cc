#include "lockstep/dash/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/dash/sections.h"

namespace lockstep::dash {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PageTest : public ::testing::Test {
 protected:
  PageTest() {
    for (const char* folder : {"logs", "errors", "checkpoints"}) std::filesystem::create_directory(dir_ / folder);
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(dir_ / name) << text; }

  testing_support::TempDir dir_;
};

launch::RunFacts under_way() {
  launch::RunFacts run{.folder = "runs/a", .recipe = "mnist", .state = launch::RunState::kUnderWay, .ranks = 2};
  run.last = {.step = 100, .epoch = 1, .loss = 0.5, .samples_per_second = 915, .seconds_a_step = 0.5};
  run.epochs = 3;
  run.steps = 220;
  run.since = 1000;
  return run;
}

TEST(Heading, SaysHowFarItIsAndHowLongItTakes) {
  const std::string text = heading(under_way(), /*now=*/1090);
  for (const char* part :
       {"runs/a", "under way", "100 of 220", "1 of 3", "0.5", "915", "about 1m", "max='220' value='100'"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Heading, LeavesOutWhatIsNotKnown) {
  const std::string text = heading({.folder = "runs/b"}, 1000);
  EXPECT_THAT(text, HasSubstr("not begun"));
  for (const char* part : {"epoch", "left", "ranks", "progress"}) EXPECT_THAT(text, Not(HasSubstr(part)));
}

TEST_F(PageTest, EveryNumberOfTheMetricsIsInAPicture) {
  write("metrics.jsonl", R"({"kind":"train","step":1,"loss":2,"lr":0.1,"own_number":4}
{"kind":"eval","split":"test","step":1,"loss":2.5,"accuracy":0.5}
{"kind":"comm","step":1,"bytes":9,"in_flight_ms":3,"waited_ms":1,"overlap":0.5}
)");
  History history(dir_ / "metrics.jsonl");
  history.refresh();
  const std::string text = charts(history);
  for (const char* title : {"Loss", "accuracy", "Learning rate", "Communication", "train/own_number"}) {
    EXPECT_THAT(text, HasSubstr(std::string("<figcaption>") + title + "</figcaption>"));
  }
  EXPECT_THAT(text, HasSubstr("training <b>2</b>"));
  EXPECT_THAT(text, HasSubstr("test <b>2.5</b>"));
  EXPECT_THAT(text, Not(HasSubstr("comm/bytes")));
}

TEST_F(PageTest, FailuresAreToldTheNewestFirst) {
  for (const char* number : {"0", "9", "10"}) {
    write(std::string("errors/attempt") + number + ".json",
          std::string(R"({"headline":"error: headline )") + number + R"(","saved":"step 5","last_lines":["<x>"]})");
  }
  write("errors/attempt11.json", "{ half");
  const std::string text = failures(dir_.path());
  const size_t at10 = text.find("headline 10"), at9 = text.find("headline 9"), at0 = text.find("headline 0");
  EXPECT_LT(at10, at9);
  EXPECT_LT(at9, at0);
  EXPECT_NE(at0, std::string::npos);
  EXPECT_THAT(text, HasSubstr("&lt;x&gt;"));
}

TEST_F(PageTest, TheLogIsShownAsATerminalShowsIt) {
  write("logs/rank0.log", "first\nstep 1/9\rstep 2/9\n\x1b[33mwarning\x1b[0m: <b>\nhalf a li");
  const std::string text = log_tail(dir_.path());
  EXPECT_THAT(text, HasSubstr("first\nstep 2/9\nwarning: &lt;b&gt;\n"));
  EXPECT_THAT(text, Not(HasSubstr("half")));
}

TEST_F(PageTest, DeepAndEndlessFilesAreLeftOut) {
  const std::string deep = std::string(300'000, '['), endless(3 << 20, '7');
  write("metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"x\":" + deep +
                             "\n{\"kind\":\"train\",\"step\":2,\"loss\":1}\n" + endless +
                             "\n{\"kind\":\"train\",\"step\":3,\"loss\":2}\n" + endless);
  write("final.json", "{\"metrics\":" + deep);
  write("errors/attempt0.json", endless);
  RunPage page(dir_.path());
  EXPECT_THAT(page.content(), HasSubstr("training <b>2</b>"));
  EXPECT_THAT(page.content(), Not(HasSubstr("Result")));
}

TEST_F(PageTest, AnEmptyFolderIsAPageThatSaysSo) {
  EXPECT_THAT(results(dir_.path()) + failures(dir_.path()) + log_tail(dir_.path()) + options(dir_.path()), IsEmpty());
  EXPECT_THAT(RunPage(dir_.path()).page(/*live=*/false), HasSubstr("not begun"));
}

TEST_F(PageTest, APageInAFileNeedsNothingElse) {
  write("config.toml", "recipe = 'mnist'\nlr = 0.5\n");
  write("final.json", R"({"metrics":{"accuracy":0.975},"weights_sha256":"0123456789abcdef"})");
  const std::string text = RunPage(dir_.path()).page(/*live=*/false);
  for (const char* part : {"<th>lr</th><td>0.5</td>", "accuracy <b>0.975</b>", "0123456789ab", "<style>"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (const char* part : {"<script", "src=", "href=", "http://", "https://", "url("}) {
    EXPECT_THAT(text, Not(HasSubstr(part)));
  }
}

TEST_F(PageTest, ALivePageRenewsItself) {
  RunPage page(dir_.path());
  EXPECT_THAT(page.page(/*live=*/true), HasSubstr("<script src='dash.js'>"));
  EXPECT_THAT(script(), HasSubstr("fetch('content'"));
  write("metrics.jsonl", "{\"kind\":\"train\",\"step\":1,\"loss\":2}\n");
  EXPECT_THAT(page.content(), HasSubstr("<figcaption>Loss"));
}

TEST_F(PageTest, WhatARunWritesIsNoPartOfThePage) {
  const std::string evil = "<script>alert(1)</script>";
  write("config.toml", "recipe = '" + evil + "'\n");
  write("logs/rank0.log", evil + "\n");
  write("errors/attempt0.json", R"({"headline":")" + evil + R"(","doing":")" + evil + R"("})");
  write("metrics.jsonl", R"({"kind":"train","step":1,")" + evil + R"(":2})" + "\n" + R"({"kind":"eval","split":")" +
                             evil + R"(","step":1,"loss":2})" + "\n");
  write("final.json", R"({"metrics":{")" + evil + R"(":")" + evil + R"("}})");
  const std::string text = RunPage(dir_.path()).page(/*live=*/true);
  EXPECT_THAT(text, HasSubstr("alert(1)"));
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
}

}  // namespace
}  // namespace lockstep::dash
