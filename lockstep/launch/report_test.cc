#include "lockstep/launch/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::launch {
namespace {

RankOutcome ended(int rank, ExitStatus status, double at) {
  return {.rank = rank,
          .pid = 800 + rank,
          .status = status,
          .ended = at,
          .doing = {},
          .error = {},
          .overflow = {},
          .remedy = {}};
}
RankOutcome stopped(int rank) {
  RankOutcome outcome = ended(rank, {.signal = SIGTERM}, 9);
  outcome.stopped = true;
  return outcome;
}

std::optional<size_t> cause(const std::vector<RankOutcome>& outcomes) { return root_cause(outcomes); }
int code(const std::vector<RankOutcome>& outcomes) { return exit_code(outcomes); }

TEST(RootCause, IsTheFirstThatFailedByItself) {
  EXPECT_EQ(cause({ended(0, {}, 1), ended(1, {}, 2)}), std::nullopt);
  EXPECT_EQ(cause({ended(0, {.code = 70}, 3), ended(1, {.code = 65}, 2), stopped(2)}), 1u);
  EXPECT_EQ(cause({stopped(0), ended(1, {.signal = SIGKILL}, 5)}), 1u);
}

TEST(RootCause, IsNotOneThatMissedItsPeer) {
  EXPECT_EQ(cause({ended(0, {.code = 69}, 1), ended(1, {.signal = SIGSEGV}, 2)}), 1u);
  EXPECT_EQ(cause({ended(0, {.code = 69}, 2), ended(1, {.code = 69}, 1)}), 1u) << "unless nobody knows better";
}

// Of a program that is not ours its last lines tell, whose exit code may be anything.
TEST(RootCause, IsNotOneWhoseLastLinesSayThatItsPeerIsGone) {
  const auto says = [](RankOutcome outcome, const std::string& line) {
    outcome.lost_peer = tells_of_lost_peer({{"Traceback (most recent call last):", true}, {line, true}});
    return outcome;
  };
  const std::string gone =
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer";
  EXPECT_EQ(cause({says(ended(0, {.code = 1}, 1), gone), says(ended(1, {.code = 1}, 2), "ValueError: bad batch")}), 1u);
  EXPECT_EQ(cause({says(ended(0, {.code = 1}, 1), "ValueError: bad batch"), says(ended(1, {.code = 1}, 2), gone)}), 0u);
  EXPECT_EQ(cause({says(ended(0, {.code = 1}, 2), gone), says(ended(1, {.code = 1}, 1), gone)}), 1u)
      << "unless nobody knows better";
}

// As together() tells it to all ranks.
TEST(RootCause, IsTheRankThatAnErrorOfAllNames) {
  std::vector<RankOutcome> outcomes = {ended(0, {.code = 65}, 2), ended(1, {.code = 65}, 1), ended(2, {.code = 65}, 3)};
  for (RankOutcome& each : outcomes) each.error = "rank 2: 7.jpg: a damaged JPEG";
  EXPECT_EQ(cause(outcomes), 2u);
  Report report;
  report.outcomes = outcomes;
  report.root = 2;
  EXPECT_EQ(to_text(report), "error: rank 2: 7.jpg: a damaged JPEG\n");
  report.outcomes[2].trained = true;
  EXPECT_THAT(to_text(report), testing::StartsWith("error: rank 2 (pid 802) failed: 7.jpg: a damaged JPEG\n"));
  outcomes[2].error = "something else";
  EXPECT_EQ(cause(outcomes), 1u);
  outcomes[1].error = "rank 21: gone";
  EXPECT_EQ(cause(outcomes), 1u);
  report.outcomes = {outcomes[1], outcomes[2]};
  report.root = 0;
  EXPECT_EQ(to_text(report), "error: rank 21: gone\n") << "one rank is named";
}

TEST(ExitCode, OfTheWholeRun) {
  EXPECT_EQ(code({ended(0, {}, 1), ended(1, {}, 2)}), 0);
  EXPECT_EQ(code({ended(0, {.code = 75}, 1), ended(1, {.code = 75}, 2)}), 75);
  EXPECT_EQ(code({ended(0, {}, 1), ended(1, {.code = 75}, 2)}), 75);
  EXPECT_EQ(code({ended(0, {.code = 75}, 1), ended(1, {.code = 70}, 2)}), 70);
  EXPECT_EQ(code({stopped(0), ended(1, {.signal = SIGKILL}, 2)}), 137);
}

TEST(NoteEnd, LeavesWhatARankDidNotSayItself) {
  BoardRank silent{}, spoke{}, finished{};
  silent.saving.store(1);
  EXPECT_TRUE(note_end(silent, {.signal = SIGSEGV}));
  EXPECT_EQ(silent.saving.load(), 0u);
  EXPECT_EQ(silent.state.load(), RankState::kFailed);
  EXPECT_EQ(silent.error.get(), "was killed by SIGSEGV");
  EXPECT_EQ(outcome_on(silent, {.signal = SIGSEGV}).error, "") << "that is not its own line";
  spoke.fail(65, "sample 7 is damaged");
  spoke.overflow.set("step 12: conv1.weight");
  EXPECT_TRUE(note_end(spoke, {.code = 65}));
  EXPECT_EQ(outcome_on(spoke, {.code = 65}).error, "sample 7 is damaged");
  EXPECT_EQ(outcome_on(spoke, {.code = 65}).overflow, "step 12: conv1.weight");
  EXPECT_FALSE(note_end(finished, {.code = 75}));
  EXPECT_EQ(finished.state.load(), RankState::kFinished);
}

TEST(Report, HasTheContractsForm) {
  Report report;
  report.outcomes = {stopped(0), stopped(1), stopped(2), ended(3, {.signal = SIGKILL}, 1)};
  report.root = 3;
  report.outcomes[3].pid = 812;
  report.outcomes[3].step = 1204;
  report.outcomes[3].doing = "fold of bucket 2/5 (layer3.conv1.weight …)";
  report.oom = "out of memory (cgroup limit 8 GiB)";
  report.failed = 8.58;
  report.saved = "checkpoint step-001000.pt";
  report.log_path = "runs/unet-3/logs/rank3.log";
  report.last_lines = {{"step 1203"}, {"step 1204"}};
  report.resume_command = "lockstep train unet --resume runs/unet-3";
  EXPECT_EQ(to_text(report),
            "error: rank 3 (pid 812) was killed by SIGKILL: out of memory (cgroup limit 8 GiB)\n"
            "  when: step 1204, fold of bucket 2/5 (layer3.conv1.weight …)\n"
            "  others: ranks 0-2 healthy, stopped by the launcher in 0.4 s\n"
            "  saved: checkpoint step-001000.pt\n"
            "  log: runs/unet-3/logs/rank3.log (last lines below)\n"
            "  next: lockstep train unet --resume runs/unet-3\n"
            "    step 1203\n"
            "    step 1204\n");
}

// Rank 2 wrote a checkpoint first, and rank 3 did so and then noticed the failure. Ranks 0 and 1 were stopped at once.
TEST(Report, RanksThatSavedFirstHaveATimeOfTheirOwn) {
  Report report;
  report.outcomes = {stopped(0), stopped(1), stopped(2), ended(3, {.code = 69}, 74), ended(4, {.signal = SIGKILL}, 8)};
  report.outcomes[0].ended = 9.2;
  report.outcomes[1].ended = 9.5;
  report.outcomes[2].ended = 60.3;
  report.outcomes[2].spared = true;
  report.root = 4;
  report.failed = 8.3;
  EXPECT_THAT(to_text(report), testing::HasSubstr("others: ranks 0-1 healthy, stopped by the launcher in 1.2 s; "));
  EXPECT_THAT(to_text(report), testing::HasSubstr("rank 2 healthy, stopped by the launcher in 52 s"));
  EXPECT_THAT(to_text(report), testing::HasSubstr("rank 3 noticed it and ended"));
  EXPECT_NEAR(nlohmann::json::parse(to_json(report))["stop_seconds"], 65.7, 1e-9);
}

TEST(Report, ARankThatStoodStillIsNotHealthy) {
  Report report;
  report.outcomes = {ended(0, {.code = 69}, 8), stopped(1)};
  report.outcomes[1].halted = true;
  EXPECT_THAT(to_text(report), testing::HasSubstr("others: rank 1 stood still (SIGSTOP), killed by the launcher in "));
}

TEST(Report, SaysWhatFollows) {
  Report report;
  report.outcomes = {ended(0, {.signal = SIGKILL}, 8)};
  report.restart = "restart 2 of 3";
  report.restarts = true;
  EXPECT_THAT(to_text(report), testing::HasSubstr("\n  next: starts anew by itself (restart 2 of 3)\n"));
  report.saved = "checkpoint step-000010.pt";
  report.resume_command = "lockstep train --resume run";
  EXPECT_THAT(to_text(report),
              testing::HasSubstr("\n  next: resumes by itself (restart 2 of 3) | lockstep train --resume run\n"));
  report.restart = "all 3 are used up";
  report.restarts = false;
  EXPECT_THAT(to_text(report),
              testing::HasSubstr("\n  restarts: all 3 are used up\n  next: lockstep train --resume run\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["restart"], "all 3 are used up");
}

TEST(Report, SaysOnlyWhatIsKnown) {
  Report report;
  report.outcomes = {ended(0, {.code = 3}, 1)};
  report.resume_command = "lockstep train unet --resume runs/unet-3";
  EXPECT_EQ(to_text(report), "error: rank 0 (pid 800) exited with code 3\n") << "nothing saved, nothing to resume";
  report.last_lines = {{"Traceback"}};
  EXPECT_EQ(to_text(report), "error: rank 0 (pid 800) exited with code 3\n  its last lines:\n    Traceback\n");
}

TEST(Report, DoesNotRepeatWhatIsOnTheScreenAlready) {
  Report report;
  report.outcomes = {ended(0, {.code = 3}, 1)};
  report.last_lines = {{.text = "Traceback", .seen = true}};
  EXPECT_EQ(to_text(report), "error: rank 0 (pid 800) exited with code 3\n");
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["last_lines"][0], "Traceback");
  report.last_lines.push_back({.text = "of its standard output"});
  EXPECT_THAT(to_text(report), testing::EndsWith("  its last lines:\n    of its standard output\n"));
}

TEST(StatusOf, IsTheBoardsWhereTheProcessesOwnIsLost) {
  BoardRank said{};
  const ExitStatus lost{.code = 70, .lost = true};
  EXPECT_TRUE(status_of(said, lost).lost) << "nobody knows";
  said.finish(0);
  EXPECT_TRUE(status_of(said, lost).ok());
  EXPECT_EQ(status_of(said, {.signal = SIGKILL}).signal, SIGKILL);
  said.fail(65, "damaged");
  EXPECT_EQ(status_of(said, lost).exit_code(), 65);
}

TEST(Report, TellsTheFateOfEachRank) {
  Report report;
  report.outcomes = {ended(0, {.code = 69}, 2), ended(1, {.code = 70}, 1), ended(2, {}, 1), ended(3, {.code = 69}, 2)};
  report.root = 1;
  report.outcomes[1].error = "weights gone astray";
  EXPECT_THAT(to_text(report), testing::StartsWith("error: rank 1 (pid 801) failed: weights gone astray\n"));
  EXPECT_THAT(to_text(report), testing::HasSubstr("  others: ranks 0, 3 noticed it and ended; rank 2 had finished\n"));
}

TEST(Report, AMistakeBeforeTheFirstStepIsOneLine) {
  Report report;
  report.outcomes = {ended(0, {.code = 65}, 1), stopped(1)};
  report.outcomes[0].error = "train.idx: byte 3: not an IDX file";
  report.last_lines = {{"noise"}};
  EXPECT_EQ(to_text(report), "error: rank 0: train.idx: byte 3: not an IDX file\n")
      << "other ranks may have other data";
  report.outcomes[0].step = 1;
  EXPECT_EQ(to_text(report), "error: rank 0: train.idx: byte 3: not an IDX file\n") << "in the first step";
  report.outcomes[0].status.code = 2;
  EXPECT_EQ(to_text(report), "error: train.idx: byte 3: not an IDX file\n") << "all have the same options";
  report.outcomes[0].trained = true;
  EXPECT_THAT(to_text(report), testing::HasSubstr("others:"));
  report.outcomes[0].trained = false;
  report.outcomes[0].status.code = 70;
  EXPECT_THAT(to_text(report), testing::HasSubstr("others:"));
}

TEST(Report, TheCommandThatGoesOnHasWhatTheRankSays) {
  Report report;
  report.outcomes = {ended(0, {.code = 65}, 1)};
  report.outcomes[0].error = "7.jpg: a damaged JPEG";
  report.outcomes[0].remedy = "--skip-bad 2";
  report.resume_command = "lockstep train unet --resume runs/unet-3";
  EXPECT_EQ(to_text(report), "error: 7.jpg: a damaged JPEG\n") << "there is nothing to resume";
  report.saved = "checkpoint step-001000.pt";
  EXPECT_EQ(to_text(report),
            "error: 7.jpg: a damaged JPEG\n  next: lockstep train unet --resume runs/unet-3 --skip-bad 2\n")
      << "a resume that ended before its first step";
  report.outcomes[0].trained = true;
  EXPECT_THAT(to_text(report), testing::HasSubstr("\n  next: lockstep train unet --resume runs/unet-3 --skip-bad 2\n"));
}

// As torch.distributed.elastic.multiprocessing.errors.record writes it.
TEST(Report, ARecordedTracebackArrivesWhole) {
  const testing_support::TempDir dir;
  Report report;
  report.outcomes = {ended(0, {.code = 1}, 1)};
  report.outcomes[0].trained = true;
  report.outcomes[0].role = "stage 1 of 2";
  EXPECT_THAT(to_text(report), testing::StartsWith("error: rank 0 (pid 800; stage 1 of 2) exited with code 1\n"));
  report.last_lines = {{"the last line", false}};
  read_recorded_error(dir / "error.json", report);
  EXPECT_EQ(report.last_lines.size(), 1U) << "there is no such file";
  std::ofstream(dir / "error.json") << R"({"message": {"message": "ValueError: bad\nvalue", "extraInfo": {)"
                                       R"("py_callstack": "Traceback:\n  File a.py\nValueError: bad\n"}}})";
  read_recorded_error(dir / "error.json", report);
  EXPECT_EQ(report.outcomes[report.root].error, "ValueError: bad");
  EXPECT_THAT(to_text(report), testing::HasSubstr("    Traceback:\n      File a.py\n    ValueError: bad\n"));
  std::ofstream(dir / "error.json") << R"({"message": "another form"})";
  read_recorded_error(dir / "error.json", report);
  EXPECT_EQ(report.last_lines.size(), 3U);
}

TEST(Report, AsJson) {
  Report report;
  report.outcomes = {ended(0, {.signal = SIGSEGV}, 1), stopped(1)};
  report.last_lines = {{"not \xff UTF-8"}};
  const auto value = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(value["exit_code"], 139);
  EXPECT_EQ(value["rank"], 0);
  EXPECT_EQ(value["ranks"].size(), 2u);
  EXPECT_EQ(value["ranks"][1]["stopped_by_launcher"], true);
  EXPECT_EQ(value["headline"], "rank 0 (pid 800) was killed by SIGSEGV");
}

}  // namespace
}  // namespace lockstep::launch
