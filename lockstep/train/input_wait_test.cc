#include "lockstep/train/input_wait.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

// Steps of one second each, that wait for `wait` of it.
InputWait waiting(double wait, int steps, data::ReadStats read = {}) {
  InputWait input;
  input.step(100, {.wait = 100, .read = {.read_ns = 1'000'000'000'000}});  // the first step's are its start's
  for (int i = 0; i < steps; ++i) input.step(1, {.wait = wait, .read = read});
  return input;
}

TEST(InputWait, SaysTheShareThatWaited) {
  EXPECT_EQ(waiting(0.41, 10).line(2, 4), "input-bound: 41 % waiting for data; add --workers (now 2)");
  EXPECT_EQ(waiting(0.125, 10).line(0, 1), "input-bound: 13 % waiting for data; add --workers (now 0)");
  EXPECT_EQ(waiting(1, 10).line(0, 1), "input-bound: 100 % waiting for data; add --workers (now 0)");
}

TEST(InputWait, ATenthOrLessThanASecondIsNotWorthALine) {
  EXPECT_EQ(waiting(0.0625, 100).line(0, 4), "");
  EXPECT_EQ(waiting(0.5, 1).line(0, 4), "") << "half a second";
  EXPECT_NE(waiting(0.5, 2).line(0, 4), "");
  EXPECT_EQ(waiting(0.5, 0).line(0, 4), "") << "one step";
  EXPECT_EQ(InputWait().line(0, 4), "") << "no step";
}

TEST(InputWait, MoreThreadsThanCoresHelpOnlyWhereTheyWaitForADisk) {
  EXPECT_EQ(waiting(0.5, 4, {.read_ns = 10, .decode_ns = 8, .transform_ns = 3}).line(4, 4),
            "input-bound: 50 % waiting for data; no core is left for more --workers (now 4)");
  EXPECT_EQ(waiting(0.5, 4, {.read_ns = 12, .decode_ns = 8, .transform_ns = 3}).line(4, 4),
            "input-bound: 50 % waiting for data; add --workers (now 4)");
}

}  // namespace
}  // namespace lockstep::train
