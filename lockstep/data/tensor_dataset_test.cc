#include "lockstep/data/tensor_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::data {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

TEST(TensorDataset, GivesTheRowsAskedFor) {
  const at::Tensor points = at::arange(12, at::kFloat).view({6, 2}), labels = at::tensor({0, 1, 2, 0, 1, 2}, at::kLong);
  const at::Tensor masks = at::arange(24, at::kHalf).view({6, 2, 2}) > 5;
  const TensorDataset set(points, labels, {{"mask", masks}});
  EXPECT_EQ(set.size(), 6);
  EXPECT_EQ(set.sample_shape(), std::vector<int64_t>{2});
  EXPECT_EQ(set.classes(), 3);
  EXPECT_EQ(set.description(), "tensors data, target, mask, 6 samples");
  const std::vector<int64_t> asked = {4, 0, 4};
  const at::Tensor index = at::tensor(asked, at::kLong);
  const Batch batch = read_batch(set, asked);
  EXPECT_TRUE(at::equal(batch.data(), points.index_select(0, index)));
  EXPECT_TRUE(at::equal(batch.target(), labels.index_select(0, index)));
  EXPECT_TRUE(at::equal(batch["mask"], masks.index_select(0, index)));
  batch.data().zero_();
  EXPECT_EQ(points[4][0].item<float>(), 8) << "a batch is a copy";
  EXPECT_EQ(read_batch(set, {}).data().sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_THROW(read_batch(set, std::vector<int64_t>{6}), BugError);
}

TEST(TensorDataset, TakesViewsGraphsAndRegressions) {
  const at::Tensor whole = at::arange(12, at::kFloat).view({2, 6}).requires_grad_();
  const TensorDataset set(whole.t(), whole.t().sum(1));  // not contiguous
  EXPECT_EQ(set.classes(), 0);
  const Batch batch = read_batch(set, std::vector<int64_t>{5});
  EXPECT_TRUE(at::equal(batch.data(), at::tensor({5.0F, 11.0F}).view({1, 2})));
  EXPECT_EQ(batch.target().item<float>(), 16);
  EXPECT_FALSE(batch.data().requires_grad());
  const TensorDataset alone(at::zeros({3, 1}));
  EXPECT_FALSE(read_batch(alone, std::vector<int64_t>{1}).has("target"));
}

// libtorch notes a conjugate or a negation beside the memory, and leaves that as it is.
TEST(TensorDataset, TakesConjugatesThatAreNotYetComputed) {
  const at::Tensor waves = at::complex(at::arange(6, at::kFloat), at::ones({6})).view({3, 2});
  const TensorDataset set(at::conj(waves), at::imag(at::conj(waves)));
  const Batch batch = read_batch(set, std::vector<int64_t>{2, 0, 1});
  const at::Tensor wanted = at::conj(waves).resolve_conj().index_select(0, at::tensor({2, 0, 1}, at::kLong));
  EXPECT_TRUE(at::equal(batch.data(), wanted));
  EXPECT_TRUE(at::equal(batch.target(), at::full({3, 2}, -1.0F)));
}

TEST(TensorDataset, RefusesTensorsThatAreNoSamples) {
  const at::Tensor four = at::zeros({4, 2});
  EXPECT_EQ(refusal([&] { TensorDataset(four, at::zeros({3})); }),
            "TensorDataset: target has 3 rows, and data has 4; each has one for every sample");
  EXPECT_THAT(refusal([&] { TensorDataset(four, {}, {{"mask", at::zeros({5})}}); }), HasSubstr("mask has 5 rows"));
  EXPECT_THAT(refusal([&] { TensorDataset(four, {}, {{"mask", {}}}); }), HasSubstr("mask is an undefined tensor"));
  EXPECT_THAT(refusal([&] { TensorDataset(four, {}, {{"data", four}}); }), HasSubstr("two tensors are named data"));
  EXPECT_THAT(refusal([&] { TensorDataset{at::Tensor{}}; }), HasSubstr("data is an undefined tensor"));
  EXPECT_THAT(refusal([&] { TensorDataset(at::zeros({})); }), HasSubstr("data is one number"));
  EXPECT_THAT(refusal([&] { TensorDataset(at::zeros({4}, at::kMeta)); }), HasSubstr("data is on meta"));
}

TEST(TensorDataset, HasTheClassesThatItIsTold) {
  const at::Tensor images = at::zeros({3, 1, 2, 2}), labels = at::tensor({0, 2, -100}, at::kLong);
  EXPECT_EQ(TensorDataset(images, labels).classes(), 3);
  EXPECT_EQ(TensorDataset(images, labels, {.classes = 10}).classes(), 10);
  EXPECT_EQ(TensorDataset(images, labels, {{"weight", at::ones({3})}}, {.classes = 4}).classes(), 4);
  EXPECT_EQ(TensorDataset(at::zeros({0, 2}), at::zeros({0}, at::kLong), {.classes = 4}).classes(), 4);
  EXPECT_EQ(TensorDataset(images, labels, {.classes = 10}).fingerprint(), TensorDataset(images, labels).fingerprint());
  EXPECT_EQ(refusal([&] { TensorDataset(images, labels, {.classes = 2}); }),
            "TensorDataset: sample 1 is of class 2, and classes = 2 go from 0 to 1");
  const at::Tensor masks = at::tensor({0, 1, 1, 1, 5, 0}, at::kLong).view({3, 2});
  EXPECT_THAT(refusal([&] { TensorDataset(images, masks, {.classes = 5}); }), HasSubstr("sample 2 is of class 5"));
  EXPECT_EQ(refusal([&] { TensorDataset(images, at::zeros({3}), {.classes = 2}); }),
            "TensorDataset: classes = 2, and the target is Float; classes are int64");
  EXPECT_THAT(refusal([&] { TensorDataset(images, {}, {.classes = 2}); }), HasSubstr("there is no target"));
  EXPECT_THAT(refusal([&] { TensorDataset(images, labels, {.classes = -1}); }), HasSubstr("classes = -1; 1 or more"));
}

TEST(TensorDataset, IsToldFromOthersByItsBytes) {
  const auto of = [](float last) { return TensorDataset(at::tensor({1.0F, last})).fingerprint(); };
  EXPECT_EQ(of(2), of(2));
  EXPECT_NE(of(2), of(3));
  const at::Tensor data = at::arange(8, at::kInt).view({2, 4});
  const std::string fingerprint = TensorDataset(data).fingerprint();
  EXPECT_NE(TensorDataset(data.view({4, 2})).fingerprint(), fingerprint) << "other sizes";
  EXPECT_NE(TensorDataset(data.view(at::kFloat)).fingerprint(), fingerprint) << "another dtype";
  const at::Tensor more = at::ones({2});
  EXPECT_NE(TensorDataset(data, {}, {{"mask", more}}).fingerprint(),
            TensorDataset(data, {}, {{"weight", more}}).fingerprint());
}

TEST(TensorDataset, IsLoadedByWorkers) {
  const auto set = std::make_shared<TensorDataset>(at::arange(10, at::kFloat).view({10, 1}));
  Loader loader(set, LaneSampler({.dataset_size = 10, .batch_size = 4, .shuffle = false}), {.workers = 2});
  loader.next();
  EXPECT_TRUE(at::equal(loader.next().lanes[0].data().flatten(), at::tensor({4.0F, 5.0F, 6.0F, 7.0F})));
}

}  // namespace
}  // namespace lockstep::data
