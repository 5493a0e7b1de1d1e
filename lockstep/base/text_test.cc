#include "lockstep/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockstep {
namespace {

TEST(Text, CatsParts) { EXPECT_EQ(cat("rank ", 3, " of ", 4L), "rank 3 of 4"); }

TEST(Text, TakesTheFirstLine) {
  EXPECT_EQ(first_line("no such device\nframe #0: …\nframe #1: …"), "no such device");
  EXPECT_EQ(first_line("one"), "one");
  EXPECT_EQ(first_line(""), "");
}

TEST(Text, WritesNumbers) {
  EXPECT_EQ(write_number(0.1), "0.1");
  EXPECT_EQ(write_number(-std::nan("")), "nan") << "whatever its sign";
}

TEST(Text, NamesBytes) {
  EXPECT_EQ(human_bytes(1), "1 byte");
  EXPECT_EQ(human_bytes(1023), "1023 bytes");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(8ull << 30), "8 GiB");
  EXPECT_EQ(human_bytes((1ull << 20) - 1), "1 MiB");
}

TEST(Text, ListsRanks) {
  EXPECT_EQ(ranges(std::vector<int>{}), "none");
  EXPECT_EQ(ranges(std::vector<int>{0, 1, 2, 5}), "0-2, 5");
  EXPECT_EQ(ranges(std::vector<int>{7}), "7");
  EXPECT_EQ(named_ranks(std::vector<int>{7}), "rank 7");
  EXPECT_EQ(named_ranks(std::vector<int>{0, 1, 2, 5}), "ranks 0-2, 5");
}

TEST(Text, ListsTheFirstFew) {
  const auto text = [](int number) { return number; };
  EXPECT_EQ(first_few(std::vector<int>{}, 2, text), "");
  EXPECT_EQ(first_few(std::vector<int>{7, 8}, 2, text), "7, 8");
  EXPECT_EQ(first_few(std::vector<int>{7, 8, 9}, 2, text), "7, 8, …");
}

TEST(Text, FindsTheNearestWord) {
  const std::vector<std::string> options = {"--epochs", "--steps", "--lr", "--batch-size"};
  EXPECT_EQ(nearest("--epoch", options), "--epochs");
  EXPECT_EQ(nearest("--batchsize", options), "--batch-size");
  EXPECT_EQ(nearest("--colour-of-the-sky", options), "");
}

}  // namespace
}  // namespace lockstep
