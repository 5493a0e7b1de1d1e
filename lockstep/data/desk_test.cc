#include "lockstep/data/desk.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

std::string late(const std::deque<Desk>& desks) {
  try {
    throw_late(desks, TensorDataset(at::zeros({9})), std::chrono::milliseconds(1500));
  } catch (const IoError& error) {
    return error.what();
  }
}

TEST(Desk, TheSampleThatIsReadLongestIsNamed) {
  std::deque<Desk> desks(4);
  desks[1].put(7);
  desks[2].put(3);
  desks[3].put(5);
  desks[2].since = desks[1].since - 2'000'000'000;
  EXPECT_THAT(late(desks), StartsWith("loading data: sample 3 has been read for 2"));
  EXPECT_THAT(late(desks), EndsWith(" s; does the file system that the data lies on hang?"));
  desks[2].clear();
  desks[3].since = desks[1].since - 1'000'000'000;
  EXPECT_THAT(late(desks), StartsWith("loading data: sample 5 has been read for 1"));
}

TEST(Desk, WhereNoneIsReadTheWaitIsNamed) {
  EXPECT_EQ(late(std::deque<Desk>(2)), "loading data: a batch was not ready after 1.5 s");
}

}  // namespace
}  // namespace lockstep::data
