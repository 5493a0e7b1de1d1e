#include "lockstep/loop/background_saves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/file_size_limit.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/loop/testing/loops.h"

namespace lockstep::loop {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing_support::FileSizeLimit;
using ::lockstep::testing_support::TempDir;
using ::testing::HasSubstr;
using testing_support::TinyLoop;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text of the IoError that `act` throws.
template <typename Act>
std::string failure(const Act& act) {
  try {
    act();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no IoError";
}

class BackgroundSavesTest : public ::testing::Test {
 protected:
  void step(float weight) {
    const at::NoGradGuard no_grad;
    loop_.net->weight.fill_(weight);
    ++loop_.step;
  }
  std::string path(const char* name) const { return folder_ + '/' + name; }

  TempDir dir_;
  const std::string folder_ = dir_ / "checkpoints";
  TinyLoop loop_;
  checkpoint::CheckpointStore store_{folder_, {.keep_last = 2}};
};

TEST_F(BackgroundSavesTest, AreTheFilesOfSavesThatAreWaitedFor) {
  checkpoint::CheckpointStore waited(dir_ / "waited", {.keep_last = 2});
  BackgroundSaves saves(*loop_.world, store_);
  for (const float weight : {1.0f, 2.0f, 3.0f, 4.0f}) {
    step(weight);
    loop_.state().save(waited, /*best=*/weight == 2);
    loop_.state().save(saves, /*best=*/weight == 2);
  }
  step(5);  // changes nothing of what was saved
  saves.wait();
  ASSERT_EQ(store_.list().size(), 3U) << "the last two, and the best";
  for (const auto& saved : store_.list()) {
    const std::string name = fs::path(saved.path).filename();
    EXPECT_TRUE(content(saved.path) == content(dir_ / "waited/" + name)) << name;
  }
  EXPECT_EQ(fs::read_symlink(path("last.pt")), "step-000007.pt");
  EXPECT_EQ(fs::read_symlink(path("best.pt")), "step-000005.pt");
  EXPECT_TRUE(loop_.state().load(store_));
  EXPECT_EQ(loop_.step, 7);
  EXPECT_EQ(loop_.net->weight[0][0].item<float>(), 4);
}

TEST_F(BackgroundSavesTest, AreThereWhenTheirOwnerEnds) {
  {
    BackgroundSaves saves(*loop_.world, store_);
    loop_.state().save(saves);
  }
  EXPECT_TRUE(fs::exists(path("step-000003.pt")));
}

TEST_F(BackgroundSavesTest, TheLoopGoesOnWithoutTwoAndEndsWithTheThirdInARow) {
  BackgroundSaves saves(*loop_.world, store_);
  loop_.state().save(saves);
  saves.wait();
  const FileSizeLimit full(0, [](int) {});
  step(1);
  loop_.state().save(saves);
  EXPECT_THAT(failure([&] { saves.wait(); }), HasSubstr("step-000004.pt"));
  for (int failures = 1; failures < 3; ++failures) {
    step(1);
    EXPECT_NO_THROW(loop_.state().save(saves));
    EXPECT_THAT(failure([&] { saves.wait(); }), HasSubstr(".pt"));
  }
  step(1);
  EXPECT_THAT(failure([&] { loop_.state().save(saves); }), HasSubstr("3 checkpoints in a row were not saved"));
  EXPECT_EQ(fs::read_symlink(path("last.pt")), "step-000003.pt") << "the earlier one stays";
}

TEST_F(BackgroundSavesTest, AFailureThatASuccessFollowsIsTold) {
  BackgroundSaves saves(*loop_.world, store_);
  std::optional<FileSizeLimit> full(std::in_place, 0, [](int) {});
  loop_.state().save(saves, /*best=*/true);
  EXPECT_THAT(failure([&] { saves.wait(); }), HasSubstr("step-000003.pt"));
  full.reset();
  step(1);
  ::testing::internal::CaptureStderr();
  loop_.state().save(saves);
  saves.wait();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a checkpoint was not saved, the loop goes on: "));
  EXPECT_FALSE(fs::exists(path("best.pt")));
  EXPECT_TRUE(fs::exists(path("step-000004.pt")));
}

// By this its launcher lets it finish when another rank dies.
TEST_F(BackgroundSavesTest, AFileIsOnTheBoardUntilItIsWritten) {
  BackgroundSaves saves(*loop_.world, store_);
  loop_.state().save(saves);
  saves.wait();
  EXPECT_EQ(loop_.world->self().saving.load(), 0U);
}

}  // namespace
}  // namespace lockstep::loop
