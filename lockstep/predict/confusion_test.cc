#include "lockstep/predict/confusion.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::predict {
namespace {

using ::testing::HasSubstr;

at::Tensor sure_of(const at::Tensor& classes, int64_t count) { return at::one_hot(classes, count).to(at::kFloat); }

TEST(Confusion, CountsTrueClassesByRows) {
  Confusion confusion;
  confusion.add(sure_of(at::tensor({0, 1, 1}, at::kLong), 3), at::tensor({0, 0, 2}, at::kLong));
  confusion.add(sure_of(at::tensor({1}, at::kLong), 3), at::tensor({2}, at::kLong));
  EXPECT_EQ(confusion_json(confusion.counts()).dump(), "[[1,1,0],[0,0,0],[0,2,0]]");
}

TEST(Confusion, OfMasksItIsOfPixelsAndOneOutputIsASigmoid) {
  Confusion confusion;
  const at::Tensor scores = at::tensor({-1., 2., 3., -4.}).reshape({1, 1, 2, 2});
  confusion.add(scores, at::tensor({0, 1, 0, 0}, at::kLong).reshape({1, 2, 2}));
  EXPECT_EQ(confusion_json(confusion.counts()).dump(), "[[2,1],[0,1]]");
}

TEST(Confusion, OutputsThatAreNoClassesAreRefused) {
  Confusion confusion;
  EXPECT_THROW(confusion.add(at::zeros({4, 3}), at::zeros({4})), ConfigError) << "a regression's";
  EXPECT_THROW(confusion.add(at::zeros({4}), at::zeros({4}, at::kLong)), ConfigError);
  EXPECT_THROW(confusion.add(at::zeros({4, 3, 2}), at::zeros({4, 5}, at::kLong)), ConfigError);
}

TEST(Confusion, AFewClassesAreShownWholeAndOfManyTheWorst) {
  const std::string few = confusion_text(at::tensor({5, 1, 0, 7}, at::kLong).reshape({2, 2}), {"cat", "dog"});
  EXPECT_THAT(few, HasSubstr("\n  cat          5         1\n  dog          0         7\n"));
  at::Tensor counts = at::eye(30, at::kLong) * 10;
  counts[3][7] = 4;
  EXPECT_EQ(confusion_text(counts, {}), "of 30 classes most often taken for another:\n  3 for 7: 4 of 14\n");
}

}  // namespace
}  // namespace lockstep::predict
