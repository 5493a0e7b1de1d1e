// A save on a disk that is full, or on which some call fails: one line of an IoError, and what was saved before is as
// it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <tuple>

#include "disk.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "saves.h"
#include "traced.h"

namespace lockstep::faults {
namespace {

using checkpoint::testing_support::read_file;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = DiskCall::Kind;
using testing_support::TempDir;
namespace fs = std::filesystem;

// Which calls fail, and how.
struct Fault {
  const char* name;
  int error;
  std::vector<Kind> kinds;
  bool stays;  // all such calls fail from there on, as on a disk that is full
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

const Fault kFaults[] = {
    {"NoSpaceAtOneWrite", ENOSPC, {Kind::kWrite}, false},
    {"NoSpaceFromThereOn", ENOSPC, {Kind::kOpen, Kind::kWrite, Kind::kLink}, true},
    {"WriteError", EIO, {Kind::kWrite}, false},
    {"SyncError", EIO, {Kind::kSync}, false},
    {"RenameError", EIO, {Kind::kRename}, false},
    {"LostDisk", EIO, {Kind::kOpen, Kind::kWrite, Kind::kSync, Kind::kRename, Kind::kLink, Kind::kTruncate}, true},
};

bool concerns(const Fault& fault, const DiskCall& call) {
  return std::count(fault.kinds.begin(), fault.kinds.end(), call.kind) > 0;
}

// A save of step 3 that meets the fault at the `nth` call that it concerns, then the same on a disk that is well.
struct Met {
  std::string at;  // the call that failed; "" if there was none
  std::string first, second;
  std::string left_over;  // temporary files after the first save
  std::vector<DiskCall> calls;
};

Met meet(const Fault& fault, Writer writer, size_t nth, const std::string& run) {
  Met met;
  size_t seen = 0;
  bool well = false;
  const auto body = [&] {
    const std::string said = try_save(run, 3, Size::kLarge, writer) + '\n' + left_over_in(run) + '\n';
    fs::create_directory(run + "/well");  // by which the tracer knows
    return said + try_save(run, 3, Size::kLarge, writer);
  };
  Traced traced = run_traced(run, body, [&](size_t, const DiskCall& call) {
    well = well || call.kind == Kind::kMakeFolder;
    const bool hit = !well && concerns(fault, call) && (seen++ == nth || (fault.stays && seen > nth));
    if (hit && met.at.empty()) met.at = text_of(call);
    return Decision{.fail_with = hit ? fault.error : 0};
  });
  std::istringstream lines(traced.said);
  std::getline(lines, met.first);
  std::getline(lines, met.left_over);
  std::getline(lines, met.second);
  std::string beyond;
  EXPECT_FALSE(std::getline(lines, beyond)) << "an error of several lines: " << traced.said;
  met.calls = std::move(traced.calls);
  return met;
}

// After a failed fsync the kernel may have dropped what it could not write, and the next one would succeed.
void expect_no_second_sync(const std::vector<DiskCall>& calls) {
  Disk disk(two_saves());
  std::map<int, std::string> failed;
  for (const DiskCall& call : calls) {
    const bool of_file = call.kind == Kind::kSync && call.name.find(".pt") != std::string::npos;
    const int file = of_file ? disk.file(call.name) : -1;
    if (file >= 0) EXPECT_FALSE(failed.contains(file)) << text_of(call);
    if (file >= 0 && call.result < 0) failed[file] = call.name;
    disk.apply(call);
  }
}

class FailingDisk : public ::testing::TestWithParam<std::tuple<Fault, Writer>> {};

TEST_P(FailingDisk, IsAnErrorAndLosesNothing) {
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  const auto& [fault, writer] = GetParam();
  size_t nth = 0;
  for (;; ++nth) {
    const TempDir dir;
    const std::string run = dir / "run";
    copy_two_saves(run);
    const Met met = meet(fault, writer, nth, run);
    if (met.at.empty()) break;
    SCOPED_TRACE(met.at);
    ASSERT_THAT(met.first, StartsWith("IoError: " + run));
    ASSERT_THAT(met.first, HasSubstr(fault.error == ENOSPC ? "No space left" : "Input/output error"));
    ASSERT_EQ(met.left_over, "");
    ASSERT_EQ(met.second, "saved");
    expect_no_second_sync(met.calls);
    ASSERT_EQ(wrong_in(run, 3, 3), "");
    ASSERT_EQ(left_over_in(run), "");
  }
  EXPECT_GE(nth, writer == Writer::kKeeper ? 1u : 2u) << "the fault met too few calls";
}

// As above, but looked at before the next save.
TEST_P(FailingDisk, LeavesTheEarlierCheckpointsAsTheyWere) {
  LOCKSTEP_LONG_TEST_IF(true);
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  const auto& [fault, writer] = GetParam();
  for (size_t nth = 0;; ++nth) {
    const TempDir dir;
    const std::string run = dir / "run";
    copy_two_saves(run);
    size_t seen = 0;
    bool hit = false;
    run_traced(
        run, [&, writer = writer] { return try_save(run, 3, Size::kLarge, writer); },
        [&, &fault = fault](size_t, const DiskCall& call) {
          const bool fails = concerns(fault, call) && (seen++ == nth || (fault.stays && seen > nth));
          hit = hit || fails;
          return Decision{.fail_with = fails ? fault.error : 0};
        });
    if (!hit) break;
    ASSERT_EQ(wrong_in(run, 2, 3), "") << "fault " << nth;
    for (const int64_t step : {1, 2}) {
      ASSERT_EQ(read_file(cat(folder_in(run), '/', checkpoint::step_file_name(step))) == file_of(step), true) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingDisk,
                         ::testing::Combine(::testing::ValuesIn(kFaults),
                                            ::testing::Values(Writer::kRank, Writer::kKeeper)),
                         [](const auto& each) {
                           return std::get<0>(each.param).name + name_of(std::get<1>(each.param));
                         });

// On a file system of these bytes: saves until no more fit. "" or what is wrong.
std::string fill(const std::string& place, size_t bytes) {
  if (mount("none", place.c_str(), "tmpfs", 0, cat("size=", bytes).c_str()) != 0) return cat("no mount: ", errno);
  const auto save = [&](int64_t step) {
    checkpoint::CheckpointStore store(folder_in(place), {.keep_last = 0});
    store.save(step, state_of(step, Size::kSmall));
  };
  std::string wrong;
  int64_t saved = 0;
  std::string line;
  try {
    for (int64_t step = 1; step <= 6; ++step) save(step), saved = step;
  } catch (const IoError& error) {
    line = error.what();
  }
  if (line.find("No space left") == std::string::npos) wrong = cat("not full: ", line);
  if (line.find('\n') != std::string::npos) wrong = "several lines: " + line;
  if (fs::exists(folder_in(place)) && !left_over_in(place).empty()) wrong = "left over:" + left_over_in(place);
  const auto loaded = checkpoint::CheckpointStore(folder_in(place)).load_newest();
  const int64_t found = loaded ? loaded->saved.step : 0;
  // The file may have its name when there is no space for the link.
  if (found != saved && found != saved + 1) wrong = cat("saved ", saved, ", found ", found);
  if (loaded && !loaded->damaged.empty()) wrong = loaded->damaged[0].why;
  umount(place.c_str());
  return wrong;
}

// A child of its own, whose mounts go with it.
int fill_all(const std::string& place, size_t least, size_t most) {
  const pid_t pid = fork();
  if (pid != 0) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }
  constexpr int kNoRights = 77;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(kNoRights);
  for (size_t bytes = least; bytes <= most; bytes += 4096) {
    const std::string wrong = fill(place, bytes);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "a disk of %zu bytes: %s\n", bytes, wrong.c_str());
    _exit(1);
  }
  _exit(0);
}

TEST(FullDisk, OfAnySizeIsAnErrorAndLosesNothing) {
  const TempDir dir;
  const int code = fill_all(dir.path(), 8192, 160 << 10);
  if (code == 77) GTEST_SKIP() << "mounting a small disk needs root";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace lockstep::faults
