// Faults of a rank in each phase of a run, over shared memory and over a network: each cell says how the launcher ends,
// what it reports, and that nobody is left behind. LOCKSTEP_FAULT_MATRIX=1 has all cells, as ./run soak does; without
// it there is one a fault. And what lies around a run: the clock, and /dev/shm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "e2e/memory_cgroup.h"
#include "e2e/program.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/text.h"

namespace lockstep::soak {
namespace {

using e2e::Program;
using e2e::Result;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// All are gone so soon; beside other tests it may take longer.
seconds gone_within() { return env("LOCKSTEP_FAULT_MATRIX") ? seconds(2) : seconds(10); }

struct Cell {
  const char* fault;
  const char* phase;
  const char* backend;
};

struct Expected {
  int exit_code;
  const char* report = "";  // a regular expression for what the launcher says
  int rank = -1;            // that errors/attempt0.json names; -1: there is no such file
};

// How a run ends whose rank 1 meets this fault.
Expected expected(const Cell& cell) {
  const std::string fault = cell.fault;
  if (fault == "kill") return {128 + SIGKILL, "error: rank 1 \\(pid [0-9]+\\) was killed by SIGKILL\n", 1};
  if (fault == "segv") return {128 + SIGSEGV, "error: rank 1 \\(pid [0-9]+\\) was killed by SIGSEGV\n", 1};
  if (fault == "oom") {
    return {128 + SIGKILL, "error: rank 1 .* was killed by SIGKILL: out of memory \\(cgroup limit 1 GiB\\)\n", 1};
  }
  if (fault == "abort") return {128 + SIGABRT, "error: rank 1 \\(pid [0-9]+\\) was killed by SIGABRT\n", 1};
  if (fault == "exit3") return {3, "error: rank 1 \\(pid [0-9]+\\) exited with code 3\n", 1};
  // The loader names the sample, and takes the data for the fault.
  if (fault == "exception") {
    const bool of_data = std::string(cell.phase) == "prefetch";
    return {of_data ? 65 : 70, "error: rank 1[: ].*a planted exception", of_data ? -1 : 1};
  }
  // Without common memory nobody knows for whom he waits before the ranks know each other.
  const std::string phase = cell.phase;
  if (fault == "stop" && std::string(cell.backend) == "gloo" && (phase == "spawn" || phase == "rendezvous")) {
    return {69, "rank 1 (.*is stopped \\(SIGSTOP|stood still \\(SIGSTOP\\))", 0};
  }
  if (fault == "stop") return {76, "error: rank 1 .*failed: hung: no progress .*it is stopped \\(SIGSTOP", 1};
  if (fault == "hang") return {76, "error: rank 1 .*failed: hung: no progress .*it is alive", 1};
  if (fault == "front") return {128 + SIGKILL};
  return {0};  // slow, stop_and_go, port
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const char* fault :
       {"kill", "segv", "abort", "exit3", "exception", "oom", "stop", "stop_and_go", "hang", "slow", "front", "port"}) {
    for (const char* backend : {"shm", "gloo"}) {
      for (const char* phase : {"backward", "spawn", "rendezvous", "fold", "save", "prefetch", "exit"}) {
        // A rank that hangs is told from one that is slow only once all know each other.
        const bool is_early = std::string(phase) == "spawn" || std::string(phase) == "rendezvous";
        const bool is_late = std::string(phase) == "exit";
        if (std::string(fault) == "hang" && (is_early || is_late)) continue;
        if (std::string(fault) == "port" && std::string(phase) == "spawn") continue;  // Surroundings
        all.push_back({fault, phase, backend});
        if (!env("LOCKSTEP_FAULT_MATRIX")) break;
      }
      if (!env("LOCKSTEP_FAULT_MATRIX") && std::string(fault) != "hang") break;  // which each backend sees by itself
    }
  }
  return all;
}

Program::Options loop_of(const Cell& cell, const std::string& folder) {
  const std::string logs = std::filesystem::path(folder).parent_path() / "logs";
  // Of three ranks two wait for the one that hangs.
  const char* const ranks = std::string(cell.fault) == "hang" ? "3" : "2";
  return e2e::lockstep_command({"launch", "--nproc-per-node", ranks, "--log-dir", logs,
                                e2e::bin_folder() + "/faulty_loop", cell.fault, cell.phase, cell.backend, folder});
}

std::string weights_in(const std::string& out) {
  const size_t at = out.find("weights ");
  return at == std::string::npos ? "" : out.substr(at, 8 + 64);
}

// Nobody waits for that rank but the launcher, which has no limit of time of its own.
bool stands_still_at_its_end(const Cell& cell) {
  return std::string(cell.fault) == "stop" && std::string(cell.phase) == "exit";
}

void expect_goes_on_until_it_is_told(Program& program) {
  EXPECT_TRUE(e2e::eventually([&] { return !weights_in(program.out()).empty(); }));
  std::this_thread::sleep_for(seconds(2));
  EXPECT_FALSE(program.all_gone(std::chrono::milliseconds(0)));
  program.signal(SIGTERM);
  const Result result = program.wait(seconds(60));
  EXPECT_NE(result.exit_code, 0) << result.err;
  EXPECT_TRUE(program.all_gone(gone_within())) << "somebody is left";
}

const std::string& undisturbed() {
  static const std::string weights = [] {
    const testing_support::TempDir folder;
    return weights_in(Program(loop_of({"none", "", "shm"}, folder / "run")).wait().out);
  }();
  EXPECT_EQ(weights.size(), 8U + 64U);
  return weights;
}

// The number that follows these words in a text; nothing if they are not there.
std::optional<int64_t> number_after(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::stoll(text.substr(at + words.size()));
}

// Milliseconds from a fault until the other rank is told of it, and until all are gone.
struct Times {
  std::vector<double> told, gone;
};

// By fault; a soak ends with their worst.
std::map<std::string, Times>& times() {
  static std::map<std::string, Times> all;
  return all;
}

// A process that ends tells the launcher at once; one that is stopped, or fills a cgroup first, takes time.
bool ends_at_once(const Cell& cell) {
  const std::string fault = cell.fault;
  return fault == "kill" || fault == "segv" || fault == "abort" || fault == "exit3" || fault == "exception";
}

// Beside other tests it takes longer: only a soak has these limits.
void expect_in_time(const Cell& cell, const std::string& said, int64_t ended_ns) {
  if (!ends_at_once(cell) || !env("LOCKSTEP_FAULT_MATRIX")) return;
  constexpr double kToldMs = 100, kGoneMs = 2000;
  constexpr double kAskedMs = 400;  // the launcher gives ranks so long to find the fault, then it asks them to end
  const auto met = number_after(said, cat("met ", cell.fault, " in ", cell.phase, " at "));
  ASSERT_TRUE(met) << said;
  Times& own = times()[cell.fault];
  own.gone.push_back(static_cast<double>(ended_ns - *met) * 1e-6);
  EXPECT_LT(own.gone.back(), kGoneMs);
  // Without it the other rank had done all that it had to do.
  if (const auto told = number_after(said, "told at ")) {
    own.told.push_back(static_cast<double>(*told - *met) * 1e-6);
    const std::string phase = cell.phase;
    const bool waits_in_a_call = phase != "spawn" && phase != "rendezvous";
    // An exception ends its process only once all has been unwound.
    if (std::string(cell.fault) != "exception") {
      EXPECT_LT(own.told.back(), waits_in_a_call ? kToldMs : kAskedMs + kToldMs);
    }
  } else {
    EXPECT_STREQ(cell.phase, "exit");
  }
}

class FaultMatrix : public ::testing::TestWithParam<Cell> {
 protected:
  static void TearDownTestSuite() {
    for (auto& [fault, of] : times()) {
      std::sort(of.told.begin(), of.told.end());
      std::sort(of.gone.begin(), of.gone.end());
      std::cout << fault << ": told after " << of.told[of.told.size() / 2] << " ms, at most " << of.told.back()
                << "; all gone after " << of.gone[of.gone.size() / 2] << " ms, at most " << of.gone.back() << '\n';
    }
  }
};

TEST_P(FaultMatrix, EndsAsItShould) {
  const Cell& cell = GetParam();
  const testing_support::TempDir folder;
  std::optional<e2e::MemoryCgroup> cgroup;
  Program::Options options = loop_of(cell, folder / "run");
  if (std::string(cell.fault) == "oom") {
    cgroup.emplace(uint64_t{1} << 30);
    if (!cgroup->is_there())
      GTEST_SKIP() << "only root can make a memory cgroup, where the machine has a place for one";
    options.command = cgroup->entered_by(options.command);
  }
  Program program(options);
  if (stands_still_at_its_end(cell)) return expect_goes_on_until_it_is_told(program);
  const Result result = program.wait(seconds(60));
  const int64_t ended_ns = monotonic_ns();
  const Expected wanted = expected(cell);
  EXPECT_EQ(result.exit_code, wanted.exit_code) << result.err;
  EXPECT_THAT(result.err, ::testing::ContainsRegex(wanted.report));
  const auto report = nlohmann::json::parse(e2e::read_file(folder / "logs/errors/attempt0.json"), nullptr, false);
  EXPECT_EQ(report.is_object() ? report.value("rank", -1) : -1, wanted.rank) << report;
  EXPECT_TRUE(program.all_gone(gone_within())) << "somebody is left";
  if (std::string(cell.fault) != "front") {  // which shows no more of what ranks say
    EXPECT_THAT(result.out + result.err, HasSubstr(cat("met ", cell.fault, " in ", cell.phase)));
  }
  if (wanted.exit_code == 0) EXPECT_EQ(weights_in(result.out), undisturbed());
  expect_in_time(cell, result.out + result.err, ended_ns);
}

INSTANTIATE_TEST_SUITE_P(All, FaultMatrix, ::testing::ValuesIn(cells()), [](const auto& info) {
  return cat(info.param.fault, "_in_", info.param.phase, "_over_", info.param.backend);
});

// What concerns a whole run, over each backend, while rank 1 stands still for three seconds in a phase.
class Surroundings : public ::testing::TestWithParam<Cell> {
 public:
  static std::vector<Cell> cells() {
    std::vector<Cell> all;
    for (const char* backend : {"shm", "gloo"}) {
      for (const char* phase : {"fold", "spawn", "rendezvous", "backward", "save", "prefetch", "exit"}) {
        all.push_back({"stop_and_go", phase, backend});
        if (!env("LOCKSTEP_FAULT_MATRIX")) break;
      }
    }
    return all;
  }

 protected:
  static void expect_no_effect(const std::vector<std::string>& before, const char* said = "") {
    const testing_support::TempDir folder;
    Program::Options options = loop_of(GetParam(), folder / "run");
    options.command.insert(options.command.begin(), before.begin(), before.end());
    const Result result = Program(options).wait(seconds(60));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out + result.err,
                AllOf(HasSubstr(cat("met stop_and_go in ", GetParam().phase)), HasSubstr(said)));
    EXPECT_EQ(weights_in(result.out), undisturbed());
  }
};

TEST_P(Surroundings, AFullShmFolderHasNoEffect) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a small disk needs root";
  expect_no_effect({"/usr/bin/env", "unshare", "--mount", "/bin/sh", "-c",
                    "mount -t tmpfs -o size=16m none /dev/shm && head -c 16m /dev/zero > /dev/shm/full && "
                    "! head -c 1m /dev/zero 2>/dev/null > /dev/shm/more && exec \"$@\"",
                    "with-small-shm"});
}

TEST_P(Surroundings, AClockThatIsMovedByAnHourHasNoEffect) {
  if (e2e::kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
  expect_no_effect({"/usr/bin/env", "LD_PRELOAD=" + e2e::bin_folder() + "/moved_clock.so"}, "the clock was moved");
}

INSTANTIATE_TEST_SUITE_P(All, Surroundings, ::testing::ValuesIn(Surroundings::cells()),
                         [](const auto& info) { return cat(info.param.phase, "_over_", info.param.backend); });

class TakenPort : public ::testing::TestWithParam<const char*> {};

// Ranks that meet by the node's memory have no use for it; others get another one, which counts as no restart.
TEST_P(TakenPort, HasNoEffect) {
  const testing_support::TempDir folder;
  const Result result = Program(loop_of({"port", "spawn", GetParam()}, folder / "run")).wait(seconds(60));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out + result.err, HasSubstr("met port in spawn\n"));
  EXPECT_EQ(weights_in(result.out), undisturbed());
  const bool meets_there = std::string(GetParam()) == "gloo";
  EXPECT_EQ(result.err.find("with another port, which counts as no restart") != std::string::npos, meets_there)
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(Backends, TakenPort, ::testing::Values("shm", "gloo"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lockstep::soak
