#include "lockstep/data/batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::data {
namespace {

using ::lockstep::testing_support::refusal;

TEST(Batch, HasTensorsByName) {
  const at::Tensor images = at::zeros({3, 2}), classes = at::arange(3), weights = at::ones({3});
  Batch batch{{"data", images}, {"target", classes}, {"weight", weights}};
  EXPECT_EQ(batch.size(), 3);
  EXPECT_TRUE(batch.data().is_same(images));
  EXPECT_TRUE(batch.target().is_same(classes));
  EXPECT_TRUE(batch["weight"].is_same(weights));
  EXPECT_TRUE(batch.has("weight"));
  EXPECT_FALSE(batch.has("mask"));
  batch.data() = weights;
  EXPECT_TRUE(batch["data"].is_same(weights));
  std::vector<at::Tensor> seen;
  batch.for_each_tensor([&](at::Tensor& tensor) { seen.push_back(tensor); });
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Batch, NamesItsTensorsWhereOneIsMissing) {
  EXPECT_EQ(refusal([] {
              Batch({{"data", at::zeros({1})}, {"weight", at::zeros({1})}}).target();
            }),
            "the batch has no tensor target; it has data, weight");
  EXPECT_EQ(refusal([] { Batch()["mask"]; }), "the batch has no tensor mask; it has none");
}

// [3] would broadcast to the probabilities [3, 3], and their count would be a number.
TEST(Batch, HasNoClassesWhereTheTargetIsAnotherThing) {
  const at::Tensor classes = at::arange(3);
  EXPECT_TRUE(Batch::of(at::zeros({3, 2}), classes).class_target().is_same(classes));
  EXPECT_EQ(
      refusal([&] {
        Batch::of(at::zeros({3, 2}), at::one_hot(classes).to(at::kFloat)).class_target();
      }),
      "the target is no int64 class for each sample, but Float [3, 3], as probabilities of mixed batches are: count "
      "right answers on samples that are not mixed");
  EXPECT_EQ(refusal([&] {
              Batch::of(at::zeros({3, 2}), at::zeros({3, 4, 4}, at::kLong)).class_target();
            }),
            "the target is no int64 class for each sample, but Long [3, 4, 4]");
}

TEST(Batch, LeavesUndefinedTensorsOut) {
  EXPECT_FALSE(Batch::of(at::zeros({2})).has("target"));
  EXPECT_TRUE(Batch::of({}, at::zeros({2})).has("target"));
  EXPECT_EQ(Batch::of({}, at::zeros({2})).size(), 2);
  EXPECT_EQ(Batch().size(), 0);
}

}  // namespace
}  // namespace lockstep::data
