#include "lockstep/checkpoint/contents/tree_text.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TreeText, IndentsByPathAndSumsUp) {
  const at::Tensor weight = at::tensor({1.0, 2.0, 3.0, std::nan("")}, at::kFloat).reshape({2, 2});
  const Value tree =
      Dict{{"model", Dict{{"fc.weight", weight}, {"fc.bias", at::zeros({2}, at::kHalf)}}},
           {"optimizer", Dict{{"state", Dict{{0, Dict{{"step", at::ones({}, at::kLong)}}}}},
                              {"param_groups", List{Dict{{"lr", 0.1}, {"betas", Tuple{{0.9, 0.999}}}}}}}},
           {"epoch", 4},
           {"none", Dict{}}};
  EXPECT_EQ(tree_text(tree),
            "                dtype    shape      bytes  min  mean  max  std  sha256\n"
            "model\n"
            "  fc.weight     float32  [2, 2]  16 bytes    1     2    3    1  57a4be103150  1 NaN\n"
            "  fc.bias       float16  [2]      4 bytes    0     0    0    0  df3f619804a9\n"
            "optimizer\n"
            "  state\n"
            "    0\n"
            "      step      int64    []       8 bytes    1     1    1       7c9fa136d441\n"
            "  param_groups\n"
            "    0\n"
            "      lr        0.1\n"
            "      betas     (0.9, 0.999)\n"
            "epoch           4\n"
            "\n"
            "model: 2 tensors, 6 parameters, 20 bytes, 1 NaN\n"
            "optimizer: 1 tensor, 1 parameters, 8 bytes\n"
            "total: 3 tensors, 7 parameters, 28 bytes, 1 NaN\n");
}

TEST(TreeText, ShowsWhatIsChosen) {
  const Value tree =
      Dict{{"model", Dict{{"a", at::ones({2})}, {"b", at::ones({3})}}}, {"epoch", 4}, {"x", List{Dict{}}}};
  const std::string text = tree_text(tree, PathChoice("model/b"));
  EXPECT_THAT(text, HasSubstr("\nmodel\n  b  "));
  EXPECT_THAT(text, HasSubstr("total: 1 tensor, 3 parameters, 12 bytes\n"));
  EXPECT_THAT(text, Not(HasSubstr("epoch")));
  EXPECT_EQ(tree_text(tree, PathChoice("nothing")), "");
  EXPECT_EQ(tree_text(tree, PathChoice("epoch")), "epoch  4\n");
}

TEST(TreeText, KeepsToOneLineWhateverTheFileSays) {
  const Value tree = Dict{
      {"a\nb\x1b[2J", "\x80 text\nof lines"}, {"long", std::string(5000, 'x')}, {"numbers", List(10'000, Value(1))}};
  const std::string text = tree_text(tree);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_LT(text.size(), 500u);
}

TEST(Grouped, SetsCommas) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(31'037'633), "31,037,633");
}

}  // namespace
}  // namespace lockstep::checkpoint
