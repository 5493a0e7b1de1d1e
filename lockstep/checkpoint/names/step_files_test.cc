#include "lockstep/checkpoint/names/step_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::checkpoint {
namespace {

TEST(StepFiles, NamesReadBack) {
  EXPECT_EQ(step_file_name(500), "step-000500.pt");
  for (const int64_t step : {int64_t{0}, int64_t{500}, int64_t{12'345'678}}) {
    EXPECT_EQ(step_of_name(step_file_name(step)), step);
  }
}

TEST(StepFiles, OtherNamesAreNoSteps) {
  for (const char* name : {"last.pt", "step-.pt", "step-5.pt", "step-0000500.pt", "step-000500.pt.tmp",
                           "step--00005.pt", "step-000500", "xstep-000500.pt", "step-.p"}) {
    EXPECT_EQ(step_of_name(name), std::nullopt) << name;
  }
}

TEST(StepFiles, AreListedInOrder) {
  const testing_support::TempDir dir;
  for (const char* name : {"step-1000000.pt", "step-000020.pt", "step-000003.pt", "last.pt"}) {
    std::ofstream(dir / name) << "x";
  }
  std::vector<int64_t> steps;
  for (const auto& file : step_files_in(dir.path())) steps.push_back(file.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{3, 20, 1000000}));
  EXPECT_TRUE(step_files_in(dir / "none").empty());
}

}  // namespace
}  // namespace lockstep::checkpoint
