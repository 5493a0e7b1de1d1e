#include "lockstep/config/values.h"

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::config {
namespace {

using testing_support::refusal;

TEST(Values, WholeNumbers) {
  EXPECT_EQ(read_whole("epochs", "12", 1, 100), 12);
  EXPECT_EQ(read_whole("x", "-3", -5, 5), -3);
  for (const char* bad : {"", "0", "101", "ten", "1.5", "1e3", " 7", "7 ", "+7", "0x10", "99999999999999999999"}) {
    EXPECT_EQ(refusal([&] { read_whole("epochs", bad, 1, 100); }),
              cat("--epochs ", bad, ": expected a whole number from 1 to 100"));
  }
}

TEST(Values, Numbers) {
  EXPECT_EQ(read_number("lr", "1e-3", 0, 1), 1e-3);
  EXPECT_EQ(read_number("lr", ".5", 0, 1), 0.5);
  for (const char* bad : {"", "-0.1", "1.5", "nan", "inf", "0.1x", "zero"}) {
    EXPECT_EQ(refusal([&] { read_number("lr", bad, 0, 1); }), cat("--lr ", bad, ": expected a number from 0 to 1"));
  }
}

TEST(Values, NumbersReadBackTheSame) {
  for (const double value : {0.1, 1e-8, 1.0 / 3, 100.0, 6.02e23}) {
    EXPECT_EQ(read_number("x", write_number(value), 0, 1e30), value);
  }
  EXPECT_EQ(write_number(0.05), "0.05");
}

TEST(Values, Words) {
  const std::vector<std::string_view> words = {"O0", "O1", "auto"};
  const std::vector<Refused> refused = {{"01", "did you mean O1?"}, {"O0", "not here"}};
  EXPECT_EQ(read_word("amp", "auto", words, refused), 2u);
  EXPECT_EQ(read_word("amp", "o1", words), 1u);
  EXPECT_EQ(read_word("amp", "AUTO", words), 2u);
  EXPECT_EQ(refusal([&] { read_word("amp", "01", words, refused); }), "--amp 01: did you mean O1?");
  EXPECT_EQ(refusal([&] { read_word("amp", "O0", words, refused); }), "--amp O0: not here");
  EXPECT_EQ(refusal([&] { read_word("amp", "O2", words, refused); }), "--amp O2: expected O1 or auto");
}

TEST(Values, Switches) {
  EXPECT_TRUE(read_switch("pin", "on"));
  EXPECT_FALSE(read_switch("pin", "false"));
  EXPECT_EQ(refusal([] { read_switch("pin", "maybe"); }), "--pin maybe: expected on or off");
}

TEST(Values, Suggestions) {
  const std::vector<std::string> options = {"--epochs", "--steps"};
  EXPECT_EQ(did_you_mean("--epoch", options), "; did you mean --epochs?");
  EXPECT_EQ(did_you_mean("--colour-of-the-sky", options), "");
  EXPECT_EQ(did_you_mean("--stepsize", options), "; did you mean --steps?");
  EXPECT_EQ(did_you_mean("evaluate", std::vector<std::string>{"train", "eval"}), "; did you mean eval?");
}

}  // namespace
}  // namespace lockstep::config
