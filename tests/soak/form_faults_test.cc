// Faults of a rank in each form of parallel training, over shared memory and over a network: the report says what the
// rank was, and the run goes on by itself to the weights of an undisturbed one. LOCKSTEP_FAULT_MATRIX=1 has all cells,
// as ./run soak does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "e2e/endless_run.h"
#include "lockstep/base/env.h"
#include "lockstep/base/text.h"

namespace lockstep::soak {
namespace {

using e2e::operator+;
using e2e::Words;
using std::chrono::seconds;

struct Form {
  const char* name;
  Words words;
  int victim;  // the rank that meets the fault
  const char* role;
};
const std::array<Form, 3> kForms = {{
    {"replicas", {"--parallel", "dp", "--replicas", "2"}, 0, "2 replicas"},
    {"pipelines", {"--parallel", "pipeline", "--stages", "2", "--nproc", "4"}, 3, "stage 1 of 2, pipeline 1 of 2"},
    {"servers", {"--parallel", "ps", "--servers", "2", "--nproc", "4"}, 2, "server 1 of 2"},
}};

struct Fault {
  const char* name;
  int signal;
  const char* report;  // how the launcher's line goes on after the rank; "": it says nothing
};
const std::array<Fault, 6> kFaults = {{
    {"kill", SIGKILL, "was killed by SIGKILL\n"},
    {"segv", SIGSEGV, "was killed by SIGSEGV"},
    {"abort", SIGABRT, "was killed by SIGABRT"},
    {"stop", SIGSTOP, "failed: hung: no progress .*it is stopped \\(SIGSTOP"},
    {"stop_and_go", SIGSTOP, ""},
    {"front", SIGKILL, ""},  // the launcher meets it
}};

struct Cell {
  const Form* form;
  const Fault* fault;
  const char* backend;
};

// Without LOCKSTEP_FAULT_MATRIX each form and each fault at least once.
std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (size_t form = 0; form < kForms.size(); ++form) {
    for (size_t fault = 0; fault < kFaults.size(); ++fault) {
      for (const char* backend : {"shm", "gloo"}) {
        const bool is_alone = form == 0 && std::string(backend) == "gloo";  // one process uses no backend
        const bool is_kill_by_memory = fault == 0 && std::string(backend) == "shm";
        const bool is_sample =
            is_kill_by_memory || (fault % kForms.size() == form && (std::string(backend) == "gloo") != (form == 0));
        if (!is_alone && (env("LOCKSTEP_FAULT_MATRIX") || is_sample)) {
          all.push_back({&kForms[form], &kFaults[fault], backend});
        }
      }
    }
  }
  return all;
}

Words run_words() {
  return e2e::train_words({"--steps", "300", "--max-restarts", "3", "--eval-every", "1000epochs", "--snapshot-every",
                           "5", "--save-every", "10", "--timeout", "8"});
}

const nlohmann::json& undisturbed() {
  static const nlohmann::json outcome = [] {
    const e2e::TempDir dir;
    EXPECT_EQ(e2e::lockstep(run_words() + Words{"--nproc", "2", "--out", dir / "run"}).exit_code, 0);
    return e2e::outcome_of(dir / "run");
  }();
  return outcome;
}

class FormFaults : public ::testing::TestWithParam<Cell> {};

TEST_P(FormFaults, AreNamedAndTheRunGoesOn) {
  const auto& [form, fault, backend] = GetParam();
  ASSERT_FALSE(undisturbed().is_null());
  const e2e::TempDir dir;
  const std::string run = dir / "run", name = fault->name;
  Words words = run_words() + Words{"--out", run} + form->words;
  if (form->victim > 0) words = words + Words{"--backend", backend};
  e2e::Program program(e2e::lockstep_command(words));
  ASSERT_TRUE(e2e::eventually([&] { return e2e::steps_logged(run).size() > 20; }, seconds(60))) << program.err();
  const pid_t victim = e2e::worker_of(program, form->victim);
  if (name == "front") {
    program.signal(SIGKILL);
  } else {
    e2e::signal_to(victim, fault->signal);
  }
  if (name == "stop_and_go") {
    std::this_thread::sleep_for(seconds(3));
    e2e::signal_to(victim, SIGCONT);
  }
  e2e::Result result = program.wait(seconds(120));
  EXPECT_TRUE(program.all_gone(seconds(10))) << "somebody is left";
  if (name == "front") result = e2e::lockstep({"train", "--resume", run});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  if (*fault->report != '\0') {
    EXPECT_THAT(result.err, ::testing::ContainsRegex(cat("error: rank ", form->victim, " \\(pid ", victim, "; ",
                                                         form->role, "[^)]*\\) ", fault->report)));
  } else {
    EXPECT_EQ(result.err.find("error: "), std::string::npos) << result.err;
  }
  EXPECT_EQ(e2e::outcome_of(run), undisturbed());
}

INSTANTIATE_TEST_SUITE_P(All, FormFaults, ::testing::ValuesIn(cells()), [](const auto& info) {
  return cat(info.param.form->name, '_', info.param.fault->name, "_over_", info.param.backend);
});

// Of three stages the last one hangs: the second waits for it, and the first for the second.
class HangingStage : public ::testing::TestWithParam<const char*> {};

TEST_P(HangingStage, IsNamedAndNotThoseThatWait) {
  const e2e::TempDir dir;
  e2e::Program program(e2e::lockstep_command({"launch", "--nproc-per-node", "3", "--log-dir", dir / "logs",
                                              e2e::bin_folder() + "/hanging_stage", GetParam()}));
  const e2e::Result result = program.wait(seconds(60));
  EXPECT_EQ(result.exit_code, 76) << result.err;
  EXPECT_THAT(result.err, ::testing::ContainsRegex(
                              "error: rank 2 [^\n]*stage 2 of 3[^\n]*failed: hung: no progress .*it is alive"));
}

INSTANTIATE_TEST_SUITE_P(Backends, HangingStage, ::testing::Values("shm", "gloo"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lockstep::soak
