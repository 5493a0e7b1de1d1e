#include "lockstep/checkpoint/formats/pt_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace fs = std::filesystem;

std::string refusal(const std::string& path) {
  return error_of<DataError>([&] { read_pt(path); });
}

std::vector<std::string> files(const std::string& folder, const std::string& ending) {
  std::vector<std::string> paths;
  if (!fs::exists(folder)) return paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void expect_described(const std::string& path) {
  SCOPED_TRACE(path);
  const std::string expected_path = path.substr(0, path.size() - 3) + ".expected.json";
  const auto expected = nlohmann::ordered_json::parse(read_file(expected_path));
  EXPECT_EQ(describe(read_pt(path)).dump(1), expected.dump(1));
}

TEST(PtReader, ReadsWhatPyTorchWrote) { expect_described(testdata() + "/written_by_pytorch.pt"); }
TEST(PtReader, ReadsTheFormBeforePyTorch16) { expect_described(testdata() + "/written_by_pytorch_legacy.pt"); }

TEST(PtReader, ReadsEveryFixtureAsExpected) {
  const auto paths = files(fixtures() + "/checkpoints", ".pt");
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) expect_described(path);
}

TEST(PtReader, RefusesEveryHostileFixtureQuicklyAndInOneLine) {
  auto paths = files(fixtures() + "/hostile", ".pt");
  for (const std::string& path : files(fixtures() + "/hostile", ".pdparams")) paths.push_back(path);
  ASSERT_GT(paths.size(), 70u);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const Stopwatch watch;
    const std::string line = refusal(path);
    EXPECT_LT(watch.seconds(), 1.0);
    EXPECT_THAT(line, StartsWith(path + ": "));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    RecordProperty(fs::path(path).filename().string(), line);
  }
  EXPECT_FALSE(fs::exists("CANARY"));
  EXPECT_FALSE(fs::exists(fixtures() + "/hostile/CANARY"));
}

TEST(PtReader, TensorsOfOneStorageShareItAfterReading) {
  const Value file = read_pt(testdata() + "/written_by_pytorch.pt");
  const ValueView view(file, "file");
  const at::Tensor whole = view["whole"].tensor();
  const at::Tensor transposed = view["transposed"].tensor();
  ASSERT_TRUE(whole.is_alias_of(transposed));
  whole.fill_(7);
  EXPECT_TRUE((transposed == 7).all().item<bool>());
  EXPECT_FALSE(transposed.is_contiguous());
}

TEST(PtReader, SaysWhatStandsThereInsteadOfACheckpoint) {
  const TempDir dir;
  EXPECT_THAT(refusal(dir / "none.pt"), HasSubstr("none.pt: there is no such file"));
  EXPECT_THAT(refusal(dir.path()), HasSubstr("a directory"));
  write_file(dir / "empty.pt", "");
  EXPECT_THAT(refusal(dir / "empty.pt"), HasSubstr("the file is empty"));
  write_file(dir / "page.pt", "<!DOCTYPE html>\n<html>404</html>");
  EXPECT_THAT(refusal(dir / "page.pt"), HasSubstr("starts with \"<!DOCTYPE html>?<html>40...\""));
  ASSERT_EQ(mkfifo((dir / "pipe.pt").c_str(), 0600), 0);
  EXPECT_THAT(refusal(dir / "pipe.pt"), HasSubstr("not a regular file"));
}

TEST(PtReader, SaysThatAFileIsCutShort) {
  const TempDir dir;
  const std::string content = read_file(testdata() + "/written_by_pytorch.pt");
  write_file(dir / "cut.pt", content.substr(0, content.size() / 2));
  EXPECT_THAT(refusal(dir / "cut.pt"), HasSubstr("cut short or damaged"));
}

// Each file is read or refused; nothing else may come of it.
void try_to_read(const std::string& path) {
  try {
    describe(read_pt(path));
  } catch (const Error&) {
  }
}

TEST(PtReader, SurvivesDamageAnywhere) {
  const TempDir dir;
  const std::string path = dir / "damaged.pt";
  for (const char* name : {"/written_by_pytorch.pt", "/written_by_pytorch_legacy.pt"}) {
    const std::string content = read_file(testdata() + name);
    for (size_t i = 0; i < content.size(); i += 1 + content.size() / 1500) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
      write_file(path, damaged);
      try_to_read(path);
      if (i % 4 != 0) continue;
      write_file(path, content.substr(0, i));
      try_to_read(path);
    }
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
